"""Loss scaling: Keras asks replica 0 alone whether the gradients are finite."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.traps.oracle import on_each_replica, per_replica, right, still_wrong

SCALE, RATE = 4.0, 0.5


def step_with_an_overflow(strategy, make_optimizer, replica):
    """One step, inf on one replica; gives the weights and the scale, on each replica."""
    parts = [np.array([4.0, 8.0]), np.array([2.0, 1.0])]
    if replica is not None:
        parts[replica] = np.array([np.inf, 8.0])
    with strategy.scope():
        weights = keras.Variable(np.zeros(2), dtype="float64")
        optimizer = make_optimizer()
        optimizer.build([weights])
    strategy.run(lambda mine: optimizer.apply([mine], [weights]), args=(per_replica(strategy, parts),))
    scale = on_each_replica(strategy, optimizer.dynamic_scale)
    return np.concatenate([np.ravel(on_each_replica(strategy, weights)), scale])


def keras_loss_scale():
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(RATE), initial_scale=SCALE)


def our_loss_scale():
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.precision import LossScale

    return LossScale(SGD(RATE), initial_scale=SCALE)


SKIPPED = [0, 0, 0, 0, SCALE / 2, SCALE / 2]  # all replicas skip the step, all halve the scale
TAKEN = -RATE * np.array([6.0, 9.0]) / SCALE


@pytest.mark.upstream
@still_wrong("replica 0 is finite, so inf from replica 1 goes into the weights of all, and the scale stays")
def test_keras_skips_the_step_on_all_when_replica_1_overflows(upstream_mirrored):
    got = step_with_an_overflow(upstream_mirrored(2), keras_loss_scale, replica=1)
    second = -RATE * (8.0 + 8.0) / SCALE
    right(got, right=SKIPPED, known_wrong=[-np.inf, second, -np.inf, second, SCALE, SCALE])


@pytest.mark.upstream
def test_keras_skips_the_step_on_all_when_replica_0_overflows(upstream_mirrored):
    np.testing.assert_array_equal(step_with_an_overflow(upstream_mirrored(2), keras_loss_scale, replica=0), SKIPPED)


@pytest.mark.parametrize("replica", [0, 1])
def test_ours_skips_the_step_on_all_whichever_replica_overflows(strategy_with, replica):
    np.testing.assert_array_equal(step_with_an_overflow(strategy_with(2), our_loss_scale, replica), SKIPPED)


@pytest.mark.parametrize("make", [keras_loss_scale, our_loss_scale])
def test_without_an_overflow_both_take_the_step_once(strategy_with, make):
    got = step_with_an_overflow(strategy_with(2), make, replica=None)
    np.testing.assert_allclose(got, [*TAKEN, *TAKEN, SCALE, SCALE], rtol=1e-12)


def test_our_step_refuses_the_optimizer_of_keras(strategy_with):
    from tfdistedu.errors import BadInput
    from tfdistedu.models import digits_mlp
    from tfdistedu.step.replica import make_train_step

    strategy = strategy_with(2)
    with strategy.scope():
        model, optimizer = digits_mlp(hidden=2), keras_loss_scale()
    with pytest.raises(BadInput, match="asks only replica 0"):
        make_train_step(strategy, model, optimizer, "mse")
