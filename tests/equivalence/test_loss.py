"""What a loss may give, and what is refused because it would silently count for something else."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.small import X, Y, mlp
from tfdistedu.data.batches import on_replicas
from tfdistedu.errors import BadInput
from tfdistedu.step.cross_replica import make_cross_replica_step
from tfdistedu.step.loss import loss_share
from tfdistedu.step.optimizer import SGD
from tfdistedu.step.replica import make_train_step


def keep_dimensions(y, predictions):
    """Give the mean in shape [1], not []: a step would divide it by the number of examples once more."""
    return tf.reduce_mean((y - predictions) ** 2)[None]


def outputs_first(y, predictions):
    return tf.transpose((y - predictions) ** 2)


@pytest.mark.parametrize("loss", [keep_dimensions, outputs_first])
@pytest.mark.parametrize("n", [1, 2])
def test_values_that_are_not_one_an_example_are_refused_in_graph_and_eagerly(strategy_with, n, loss):
    """A test with one example a replica, or with two outputs and two examples, would find nothing."""
    strategy = strategy_with(n)
    for graph, error in ((True, tf.errors.InvalidArgumentError), (False, BadInput)):
        with strategy.scope():
            model, optimizer = mlp(), SGD(0.1)
        step = make_train_step(strategy, model, optimizer, loss, graph=graph)
        with pytest.raises(error, match=r"whose first dimension is not the number of examples\. Give one value"):
            step(on_replicas(strategy, (X[:6].astype("float32"), Y[:6].astype("float32"))))


def test_a_loss_of_keras_is_refused_for_several_outputs_and_a_function_adds_them_up():
    """Keras's function stacks a list of outputs: [2, batch, 1], and each *output* counted as an example."""
    y, outputs = (tf.ones([4, 1]), tf.ones([4, 1])), [tf.zeros([4, 1]), 3 * tf.ones([4, 1])]
    for loss in ("mse", keras.losses.MeanSquaredError(), keras.losses.mean_absolute_error):
        with pytest.raises(BadInput, match="is for one output, and the model gave 2"):
            loss_share(loss, y, outputs, 4)

    def both(y, outputs):
        return sum(keras.losses.mean_squared_error(a, b) for a, b in zip(y, outputs, strict=True))

    assert float(loss_share(both, y, outputs, 4)) == 1.0 + 4.0


def test_a_keras_loss_with_a_call_of_its_own_is_refused():
    """Under a strategy only `call` is used, so that what `__call__` does would be left out without a word."""

    class FiveTimes(keras.losses.Loss):
        def __call__(self, y, predictions, sample_weight=None):
            return 5.0 * super().__call__(y, predictions, sample_weight)

        def call(self, y, predictions):
            return tf.reduce_mean((y - predictions) ** 2, -1)

    with pytest.raises(BadInput, match="FiveTimes has a __call__ of its own"):
        loss_share(FiveTimes(), tf.ones([2, 1]), tf.zeros([2, 1]), 2)


@pytest.mark.parametrize("wrong", [None, ["mse", "mse"], 3])
def test_something_that_is_no_loss_is_refused(wrong):
    with pytest.raises(BadInput, match="the loss must be a Keras loss, its name, or a function"):
        loss_share(wrong, tf.ones([2, 1]), tf.zeros([2, 1]), 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "loss", ["mse", lambda y, p: tf.reduce_mean((y - p) ** 2, -1), keras.losses.MeanSquaredError()]
)
def test_half_precision_counts_examples_exactly(loss, dtype):
    """bfloat16 turns 1,001 into 1,000, and 70,000 is infinite in float16: with 64 examples nothing is seen."""
    for count in (1001, 70_000):
        predictions = tf.ones([count, 1], dtype)
        # As a global batch of as many examples: each brings 1 / count. Sums of float32 ones are exact up to 2**24.
        assert float(loss_share(loss, tf.zeros([count, 1]), predictions, count)) == 1.0
    assert loss_share(loss, tf.zeros([2, 1], dtype), tf.ones([2, 1], dtype), 2).dtype == tf.float32


@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3)])
def test_sample_weights_of_a_sequence_may_be_one_an_example_or_one_a_value(strategy_with, shape):
    """The error about masks says to give sample_weight, which for a sequence is one a time step."""
    rng = np.random.default_rng(0)
    y, predictions, weight = rng.normal(size=(5, 3, 2)), rng.normal(size=(5, 3, 2)), rng.uniform(0.1, 2, shape)
    loss = keras.losses.MeanSquaredError(dtype="float64")
    per_value = weight if len(shape) == 2 else weight[:, None]
    expected = (((y - predictions) ** 2).mean(-1) * per_value).mean()  # one mean over examples and time steps
    strategy = strategy_with(2)
    parts = on_replicas(strategy, (y, predictions, weight))
    shares = strategy.run(lambda y, p, w: loss_share(loss, y, p, 5, w), args=parts)
    # float64: 15 numbers of order 1 added in another order.
    np.testing.assert_allclose(float(strategy.reduce("SUM", shares, axis=None)), expected, rtol=1e-13)


def test_a_sample_weight_finer_than_the_loss_is_refused():
    with pytest.raises(BadInput, match=r"sample_weight of shape \(4, 2\) is finer than the loss"):
        loss_share("mse", tf.ones([4, 2]), tf.zeros([4, 2]), 4, tf.ones([4, 2]))
    assert float(loss_share("mse", tf.ones([4, 2]), tf.zeros([4, 2]), 4, tf.ones([4, 1]))) == 1.0


@pytest.mark.parametrize("make", [make_train_step, make_cross_replica_step])
def test_a_loss_scale_factor_of_the_optimizer_changes_nothing(strategy_with, make):
    """`apply` divides by it. A step that does not multiply first makes updates that are 8 times too small."""
    strategy = strategy_with(2)
    weights = []
    for factor in (None, 8.0):
        with strategy.scope():
            model, optimizer = mlp(), SGD(0.1, loss_scale_factor=factor)
        make(strategy, model, optimizer, "mse")(
            on_replicas(strategy, (X[:5].astype("float32"), Y[:5].astype("float32")))
        )
        weights.append(model.get_weights())
    # A power of two only shifts the exponent, so float32 stays bit for bit.
    assert all(np.array_equal(a, b) for a, b in zip(*weights, strict=True))


@pytest.mark.parametrize("loss", [keras.losses.Dice(), keras.losses.Tversky(), keras.losses.Circle()])
def test_a_loss_of_the_whole_batch_is_refused_on_several_replicas(strategy_with, loss):
    """Not even near: two parts of a batch of 8 know nothing of each other."""
    y = np.arange(8) % 3 if isinstance(loss, keras.losses.Circle) else np.eye(3)[np.arange(8) % 3]
    predictions = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    two = strategy_with(2)
    with pytest.raises(BadInput, match="is no mean over examples"):
        two.run(lambda y, p: loss_share(loss, y, p, 8), args=on_replicas(two, (y, predictions)))
    if not isinstance(loss, keras.losses.Circle):  # which masks too
        one = loss_share(loss, tf.constant(y), tf.constant(predictions), 8)
        np.testing.assert_allclose(float(one), float(loss(y, predictions)), rtol=1e-6)  # float32


def test_dice_of_single_examples_is_one_devices(strategy_with):
    rng = np.random.default_rng(0)
    y, predictions = rng.uniform(size=(8, 3)), rng.uniform(size=(8, 3))
    loss, two = keras.losses.Dice(axis=(1,), dtype="float64"), strategy_with(2)
    shares = two.run(lambda y, p: loss_share(loss, y, p, 8), args=on_replicas(two, (y, predictions)))
    # float64, eight numbers of order 1 added in another order.
    np.testing.assert_allclose(float(two.reduce("SUM", shares, axis=None)), float(loss(y, predictions)), rtol=1e-13)


def test_ignored_classes_are_refused_for_keras_divides_by_the_others_alone():
    """0.5 for 1.0 when half of the labels are ignored, on one device too."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=1)
    with pytest.raises(BadInput, match=r"leaves examples out by a Keras mask \(ignore_class\?\)"):
        loss_share(loss, tf.constant([0, 1]), tf.zeros([2, 2]), 2)
