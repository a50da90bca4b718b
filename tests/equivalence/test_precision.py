"""Loss scaling: an overflow on any replica skips the step on all; otherwise the weights are one device's."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.equivalence.small import X, Y, assert_same, batches, check_copies_equal, mlp, numbers, trained
from tfdistedu.data.batches import batched_dataset, on_replicas
from tfdistedu.errors import BadInput
from tfdistedu.step.optimizer import SGD, Adam, AdamW
from tfdistedu.step.precision import LossScale
from tfdistedu.step.replica import make_train_step


def scaled(strategy, optimizer, graph=False, build=mlp, loss="mse", **kwargs):
    with strategy.scope():
        model, optimizer = build(), LossScale(optimizer(), **kwargs)
    return model, optimizer, make_train_step(strategy, model, optimizer, loss, graph=graph)


@pytest.mark.parametrize("graph", [True, False])
def test_an_overflow_on_any_replica_skips_the_step_on_all_and_halves_the_scale_on_all(strategy_with, graph):
    """On replica 0 alone Keras does the same: the others tell the two apart."""
    strategy = strategy_with(3)
    model, optimizer, step = scaled(strategy, lambda: AdamW(0.1, weight_decay=0.5), graph, initial_scale=64.0)
    for turn, bad in enumerate((0, 1, 2), start=1):
        before = numbers([*model.variables, *optimizer.inner_optimizer.variables])
        x = X[:6].copy()
        x[2 * bad] = np.inf  # two examples a replica
        step(on_replicas(strategy, (x, Y[:6])))
        after = numbers([*model.variables, *optimizer.inner_optimizer.variables])
        assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), f"replica {bad}"
        assert [float(copy) for copy in optimizer.dynamic_scale.value.values] == [64.0 / 2**turn] * 3
    step(on_replicas(strategy, (X[:6], Y[:6])))
    assert not np.array_equal(numbers(model.variables)[0], before[0])
    assert optimizer.iterations.value.numpy() == 1
    check_copies_equal(strategy, [*model.variables, *optimizer.variables])


def test_keras_as_shipped_lets_an_overflow_on_replica_1_into_the_weights(strategy_with):
    """What the class is there for, and why the guard refuses Keras's."""
    strategy = strategy_with(2)
    with strategy.scope():
        model, optimizer = mlp(), keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    with pytest.raises(BadInput, match="only replica 0"):
        make_train_step(strategy, model, optimizer, "mse")
    optimizer.build(model.trainable_variables)
    gradients = [np.ones(v.shape, np.float32) for v in model.trainable_variables]

    def apply(bad):
        optimizer.apply([gradient * bad for gradient in gradients], model.trainable_variables)

    (bad,) = on_replicas(strategy, (np.array([1.0, np.inf], np.float32),))
    strategy.run(apply, args=(bad,))
    assert not np.isfinite(numbers(model.variables)[0]).any()
    assert optimizer.dynamic_scale.value.numpy() == 2.0**15


@pytest.mark.parametrize("n", [1, 3])
def test_the_scale_doubles_after_so_many_good_steps_in_a_row(strategy_with, n):
    strategy = strategy_with(n)
    _, optimizer, step = scaled(strategy, lambda: SGD(0.01), graph=True, initial_scale=8.0, dynamic_growth_steps=2)
    seen = []
    for bad in (False, False, False, True, False, False):
        x = np.full((4, 3), np.inf if bad else 0.1, np.float32)
        step(on_replicas(strategy, (x, Y[:4])))
        seen.append({float(c.numpy()) for c in strategy.experimental_local_results(optimizer.dynamic_scale.value)})
    # 8 -> 16 after two; the third starts a new row, which the overflow ends: 16 -> 8; two more: 16.
    assert seen == [{8.0}, {16.0}, {16.0}, {8.0}, {8.0}, {16.0}]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("n", "graph"), [(1, False), (3, True), (4, False)])
def test_clipping_acts_after_unscaling_on_the_sum_of_all_replicas(strategy_with, n, graph):
    """Scaling by a power of two does not round, so in float64 the result is the one without scaling, to 1e-12.

    Clipping before unscaling would divide a gradient of norm 0.05 by 1024; each replica's own would differ too.
    """

    def adam():
        return Adam(0.05, global_clipnorm=0.05)

    def step(*parts):
        return make_train_step(*parts, "mse", graph=graph)

    build = lambda: mlp(l2=0.1)  # noqa: E731
    with_scale, losses = trained(
        strategy_with(n), build, lambda: LossScale(adam(), initial_scale=1024.0), step, batches()
    )
    without, expected = trained(
        strategy_with(1), build, adam, lambda *parts: make_train_step(*parts, "mse", graph=False), batches()
    )
    assert_same(with_scale, without)
    assert_same(losses, expected)  # the loss that is shown is not scaled


@pytest.fixture
def mixed_float16():
    keras.config.set_dtype_policy("mixed_float16")
    yield
    keras.config.set_dtype_policy("float32")


@pytest.mark.usefixtures("mixed_float16")
@pytest.mark.parametrize("n", [2, 3])
def test_mixed_float16_equals_one_device_as_far_as_float16_goes(strategy_with, n):
    """Activations and gradients are rounded to 11 bits (5e-4) on other sums; steps of 0.1 x gradients below 1 leave
    5e-5 a step, 5e-4 in ten steps at worst. One example counted twice would be 1e-2.
    """

    def step(*parts):
        return make_train_step(*parts, "mse", graph=n == 2)

    def optimizer():
        return LossScale(SGD(0.1, momentum=0.5, global_clipnorm=1.0), initial_scale=256.0)

    sizes = (8, 7, 3, 1, 5) * 2
    data = batches(sizes, X.astype("float32"), Y.astype("float32"))
    many, _ = trained(strategy_with(n), mlp, optimizer, step, data)
    one, _ = trained(strategy_with(1), mlp, optimizer, step, data)
    assert all(weights.dtype == np.float32 for weights in many)
    assert_same(many, one, tolerance=5e-4)


@pytest.mark.usefixtures("mixed_float16")
@pytest.mark.parametrize("eager", [True, False])
def test_fit_works_with_it(strategy_with, eager):
    def fitted(n):
        strategy = strategy_with(n)
        with strategy.scope():
            model, optimizer = mlp(), LossScale(SGD(0.1), initial_scale=2.0**14)
            model.compile(optimizer, "mse", run_eagerly=eager, jit_compile=False)
        data = batched_dataset((X[:16].astype("float32"), Y[:16].astype("float32")), 8)
        model.fit(data, epochs=2, verbose=0)
        assert optimizer.iterations.value.numpy() == 4
        return numbers(model.variables)

    assert_same(fitted(2), fitted(1), tolerance=5e-4)  # as above


def test_an_inner_optimizer_that_would_reduce_again_is_refused():
    with pytest.raises(BadInput, match="second time"):
        LossScale(keras.optimizers.SGD(0.1))


def test_apply_outside_of_a_replica_function_is_refused(strategy_with):
    strategy = strategy_with(2)
    model, optimizer, _ = scaled(strategy, lambda: SGD(0.1))
    with strategy.scope(), pytest.raises(BadInput, match="cross-replica context"):
        optimizer.apply([v.value * 0 for v in model.trainable_variables], model.trainable_variables)


def test_it_is_made_again_from_its_configuration():
    optimizer = LossScale(SGD(0.1, momentum=0.9, clipnorm=1.0), initial_scale=4.0, dynamic_growth_steps=7)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert (type(again), type(again.inner_optimizer)) == (LossScale, SGD)
    assert again.get_config() == optimizer.get_config()
    assert again.inner_optimizer.reduced_before_apply
