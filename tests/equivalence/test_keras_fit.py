"""`fit` is one device's where batches divide evenly, and exactly the mean of the replicas' means where they do not."""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.small import TOLERANCE, X, Y, assert_same, check_copies_equal, mlp, numbers
from tfdistedu.data.batches import batched_dataset, replica_batch_sizes
from tfdistedu.errors import BadInput
from tfdistedu.step.optimizer import SGD, Adam
from tfdistedu.step.parts import ReplicaWarning
from tfdistedu.step.precision import LossScale
from tfdistedu.synchronous.keras_fit import check_batches, compile_model, fit

OPTIMIZERS = {
    "momentum": lambda: SGD(0.1, momentum=0.9, nesterov=True),
    "momentum, global_clipnorm": lambda: SGD(0.1, momentum=0.9, global_clipnorm=0.05),
    "adam, clipvalue": lambda: Adam(0.01, clipvalue=0.02),
}


def fitted(strategy, optimizer, dataset, eager=False, l2=0.1, check=True, epochs=2):
    with strategy.scope():
        model, optimizer = mlp(l2=l2), optimizer()
        error = keras.metrics.MeanSquaredError(name="error")
    compile_model(strategy, model, optimizer, "mse", [error], run_eagerly=eager)
    run = fit if check else lambda _, model, data, epochs: model.fit(data, epochs=epochs, verbose=0, shuffle=False)
    history = run(strategy, model, dataset, epochs).history
    check_copies_equal(strategy, [*model.variables, *optimizer.variables])
    return numbers(model.variables), [*history["loss"], *history["error"]]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("optimizer", "n", "eager"),
    [*[(name, 2, False) for name in OPTIMIZERS], ("momentum, global_clipnorm", 4, True), ("adam, clipvalue", 2, True)],
)
def test_with_our_optimizers_fit_equals_one_device_where_batches_divide_evenly(strategy_with, optimizer, n, eager):
    """The last batch has 4 of 8, so it is smaller but even. Losses and metrics are one device's too."""
    data = batched_dataset((X[:20], Y[:20]), 8)
    many, history = fitted(strategy_with(n), OPTIMIZERS[optimizer], data, eager)
    one, expected = fitted(strategy_with(1), OPTIMIZERS[optimizer], data, eager=True)
    assert_same(many, one)
    assert_same(history, expected)


@pytest.mark.usefixtures("float64")
def test_keras_optimizer_as_shipped_differs_when_it_clips(strategy_with):
    """The clip above really binds: clipping each replica's own gradient moves the weights elsewhere."""
    data = batched_dataset((X[:16], Y[:16]), 8)
    one, _ = fitted(strategy_with(1), OPTIMIZERS["momentum, global_clipnorm"], data, eager=True)
    with strategy_with(2).scope():
        model = mlp(l2=0.1)
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.05), "mse", jit_compile=False)
    model.fit(data, epochs=2, verbose=0, shuffle=False)
    assert max(np.abs(a - b).max() for a, b in zip(numbers(model.variables), one, strict=True)) > 1e-3


def mean_of_means_step(model, x, y, n):
    """Move the weights as SGD(0.1) on the mean over n replicas of their means, none as 0; penalties in full."""
    ends = np.cumsum(replica_batch_sizes(len(x), n))
    with tf.GradientTape() as tape:
        loss = sum(model.losses)
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            if end > start:
                loss += keras.ops.mean((model(x[start:end]) - y[start:end]) ** 2) / n
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        variable.assign_sub(0.1 * gradient)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("n", "batch_size"), [(4, 8), (3, 6), (2, 8)])
def test_on_ragged_batches_fit_follows_the_mean_of_the_replicas_means_exactly(strategy_with, n, batch_size):
    """The last batch: 5 on 4 replicas: 2 2 1 0; 1 on 3: 1 0 0; 5 on 2: 3 2."""
    data = batched_dataset((X[:13], Y[:13]), batch_size)
    many, _ = fitted(strategy_with(n), lambda: SGD(0.1), data, check=False, epochs=1)
    model = mlp(l2=0.1)
    for x, y in data.as_numpy_iterator():
        mean_of_means_step(model, x, y, n)
    # Keras multiplies by 1 / n in float32, which for 3 replicas is 1e-8 off; for 2 and 4 it is exact.
    assert_same(many, numbers(model.variables), 1e-7 if n == 3 else TOLERANCE)
    one, _ = fitted(strategy_with(1), lambda: SGD(0.1), data, check=False, epochs=1, eager=True)
    assert max(np.abs(a - b).max() for a, b in zip(many, one, strict=True)) > 1e-4  # and that is not one device's


def test_fit_stops_when_the_first_batch_is_ragged(strategy_with):
    """Keras adds up the replicas' *examples* of the first batch, to learn shapes; they have none in common."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have the same size and shape"):
        fitted(strategy_with(2), lambda: SGD(0.1), batched_dataset((X[:5], Y[:5]), 5), check=False)


@pytest.mark.parametrize(
    ("examples", "batch_size", "said"), [(13, 4, "batch 4 has 1 .* 1 | 0"), (9, 3, "batch 1 has 3 .* 2 | 1")]
)
def test_batches_that_do_not_divide_are_refused_with_how_they_fall(strategy_with, examples, batch_size, said):
    data = batched_dataset((X[:examples], Y[:examples]), batch_size)
    with pytest.raises(BadInput, match=said):
        check_batches(strategy_with(2), data)
    check_batches(strategy_with(1), data)
    check_batches(strategy_with(2), batched_dataset((X[:12], Y[:12]), 4))


def test_what_cannot_be_checked_is_refused(strategy_with):
    with pytest.raises(BadInput, match=r"needs a tf\.data\.Dataset"):
        check_batches(strategy_with(2), X)
    with pytest.raises(BadInput, match="never ends"):
        check_batches(strategy_with(2), batched_dataset((X, Y), 8).repeat())


def test_an_order_that_changes_each_time_is_warned_of(strategy_with):
    unbatched = tf.data.Dataset.from_tensor_slices((X, Y))
    with pytest.warns(ReplicaWarning, match="another order each time"):
        check_batches(strategy_with(2), unbatched.shuffle(64).batch(8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_batches(strategy_with(2), unbatched.shuffle(64, seed=1, reshuffle_each_iteration=False).batch(8))
        check_batches(strategy_with(2), batched_dataset((X, Y), 8, shuffle_seed=1))


def test_a_float16_model_needs_our_loss_scaling(strategy_with):
    """`compile` puts Keras's around any other optimizer, without a word."""
    strategy = strategy_with(2)
    keras.config.set_dtype_policy("mixed_float16")
    try:
        with strategy.scope():
            model, plain, scaled = mlp(), SGD(0.1), LossScale(SGD(0.1))
            wrapped = mlp()
            wrapped.compile(SGD(0.1), "mse")
    finally:
        keras.config.set_dtype_policy("float32")
    assert type(wrapped.optimizer) is keras.optimizers.LossScaleOptimizer
    with pytest.raises(BadInput, match="LossScale"):
        compile_model(strategy, model, plain, "mse")
    compile_model(strategy, model, scaled, "mse")
    assert model.optimizer is scaled


def test_a_model_made_outside_is_refused(strategy_with):
    with pytest.raises(BadInput, match="outside this strategy's scope"):
        compile_model(strategy_with(2), mlp(), SGD(0.1), "mse")


def test_a_metric_made_outside_is_refused_and_names_are_made_inside(strategy_with):
    strategy, outside = strategy_with(2), keras.metrics.MeanSquaredError(name="mine")
    with strategy.scope():
        model, optimizer = mlp(), SGD(0.1)
    for how in ({"metrics": [outside]}, {"metrics": ["mae"], "weighted_metrics": [outside]}):
        with pytest.raises(BadInput, match=r"metric mine's variable .* outside this strategy's scope"):
            compile_model(strategy, model, optimizer, "mse", **how)
    compile_model(strategy, model, optimizer, "mse", metrics=["mae"])
