"""The schedule's numbers, and what it counts: updates, whatever the replicas and micro-steps."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest

from tests.equivalence.small import numbers
from tfdistedu.data.batches import on_replicas
from tfdistedu.errors import BadInput
from tfdistedu.step.accumulate import make_accumulating_step
from tfdistedu.step.learning_rate import WarmUpCosine, scaled_rate
from tfdistedu.step.optimizer import SGD
from tfdistedu.step.precision import LossScale
from tfdistedu.step.replica import make_train_step

pytestmark = pytest.mark.usefixtures("float64")


def schedule():
    return WarmUpCosine(start=0.1, peak=0.5, warm_up=2, total=6, final=0.02)


def expected(update):
    """Write the two formulas again, with Python's floats."""
    if update < 2:
        return 0.1 + 0.4 * update / 2
    return 0.02 + 0.48 / 2 * (1 + math.cos(math.pi * min(update - 2, 4) / 4))


def test_the_rates_are_those_of_the_two_formulas_and_stay_at_the_end():
    rates = [float(schedule()(update)) for update in range(10)]
    np.testing.assert_allclose(rates, [expected(update) for update in range(10)], rtol=1e-14)
    assert (rates[0], rates[2]) == (0.1, 0.5)
    assert rates[6:] == [0.02] * 4
    assert float(WarmUpCosine(0.0, 1.0, warm_up=0, total=4)(0)) == 1.0


def one_weight():
    return keras.Sequential(
        [keras.layers.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")]
    )


def prediction(_, predictions):
    return predictions[:, 0]  # on inputs of 1 the gradient is 1, so the weight is minus the sum of the rates


@pytest.mark.parametrize(("n", "k", "scale"), [(1, 1, False), (3, 1, False), (3, 2, False), (2, 3, True)])
def test_one_rate_an_update_whatever_the_replicas_and_micro_steps(strategy_with, n, k, scale):
    """Counting micro-steps, or once a replica, would sum other rates."""
    strategy = strategy_with(n)
    with strategy.scope():
        model, optimizer = one_weight(), SGD(schedule())
        optimizer = LossScale(optimizer, initial_scale=8.0) if scale else optimizer
    if k == 1:
        step = make_train_step(strategy, model, optimizer, prediction, graph=False)
    else:
        step = make_accumulating_step(strategy, model, optimizer, prediction, k, graph=False)
    batch = on_replicas(strategy, (np.ones((3, 1)), np.zeros((3, 1))))
    for update in range(1, 5):
        for _ in range(k):
            step(batch)
        assert optimizer.iterations.value.numpy() == update
        assert -numbers(model.variables)[0].item() == pytest.approx(sum(map(expected, range(update))), rel=1e-12)


def test_the_schedule_is_saved_with_its_optimizer():
    optimizer = SGD(schedule(), momentum=0.9)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again._learning_rate) is WarmUpCosine
    assert again._learning_rate.get_config() == schedule().get_config()


def test_scaled_rate_is_linear():
    assert scaled_rate(0.1, 256, 8192) == pytest.approx(3.2)  # the paper's own example: 0.1 for 256, 3.2 for 8k
    assert scaled_rate(0.1, 64, 16) == pytest.approx(0.025)


@pytest.mark.parametrize("wrong", [(0.1, 0, 4), (0.1, 4, 0), (0.0, 4, 4), (-1.0, 4, 4)])
def test_a_rate_or_batch_of_nothing_is_refused(wrong):
    with pytest.raises(BadInput, match="must be positive"):
        scaled_rate(*wrong)


@pytest.mark.parametrize("wrong", [{"warm_up": 6}, {"warm_up": -1}, {"start": -0.1}, {"final": -1.0}])
def test_a_schedule_that_cannot_be_is_refused(wrong):
    with pytest.raises(BadInput, match="0 <= warm_up < total"):
        WarmUpCosine(**{"start": 0.1, "peak": 0.5, "warm_up": 2, "total": 6, **wrong})
