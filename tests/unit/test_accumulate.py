"""When does an accumulating step update, and what does it refuse?"""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.equivalence.small import X, Y, batches, mlp, numbers
from tfdistedu.data.batches import batched_dataset, on_replicas
from tfdistedu.errors import BadInput
from tfdistedu.step.accumulate import make_accumulating_step
from tfdistedu.step.optimizer import SGD, AdamW
from tfdistedu.step.precision import LossScale
from tfdistedu.synchronous.loop import train


def made(strategy, optimizer=lambda: SGD(0.1), k=2, graph=False):
    with strategy.scope():
        model, optimizer = mlp(), optimizer()
    return model, optimizer, make_accumulating_step(strategy, model, optimizer, "mse", k, graph=graph)


@pytest.mark.parametrize("k", [0, -1, 1.5, "2"])
def test_fewer_than_one_micro_step_is_refused(strategy_with, k):
    with pytest.raises(BadInput, match="n_micro_steps is"):
        made(strategy_with(2), k=k)


def test_nothing_moves_before_the_kth_call_and_iterations_count_updates(strategy_with):
    """Weight decay and momentum would move weights, had the first call applied zeros."""
    strategy = strategy_with(2)
    model, optimizer, step = made(strategy, lambda: AdamW(0.1, weight_decay=0.5))
    before = numbers(model.variables)
    (batch,) = batches((4,))
    step(on_replicas(strategy, batch))
    assert all(np.array_equal(a, b) for a, b in zip(before, numbers(model.variables), strict=True))
    assert (step.pending, optimizer.iterations.value.numpy()) == (1, 0)
    step(on_replicas(strategy, batch))
    assert not np.array_equal(before[0], model.variables[0].value.numpy())
    assert (step.pending, optimizer.iterations.value.numpy()) == (0, 1)


def test_flush_applies_the_left_over_once(strategy_with):
    strategy = strategy_with(2)
    _, optimizer, step = made(strategy)
    assert step.flush() is False
    assert optimizer.iterations.value.numpy() == 0
    step(on_replicas(strategy, batches((4,))[0]))
    assert (step.flush(), step.flush(), step.pending, optimizer.iterations.value.numpy()) == (True, False, 0, 1)


@pytest.mark.parametrize(("flush", "updates"), [(True, 4), (False, 3)])
def test_in_the_loop_a_left_over_is_flushed_or_carried_into_the_next_epoch(strategy_with, flush, updates):
    """Three micro-steps an epoch, two epochs, two an update: 2 + 2 with a flush, 3 without."""
    strategy = strategy_with(2)
    _, optimizer, step = made(strategy, graph=True)
    on_epoch = (lambda epoch: step.flush()) if flush else None
    train(strategy, step, batched_dataset((X[:10], Y[:10]), 4), epochs=2, on_epoch=on_epoch)
    assert optimizer.iterations.value.numpy() == updates


def test_an_overflow_in_one_micro_step_skips_the_whole_update(strategy_with):
    strategy = strategy_with(3)
    model, optimizer, step = made(strategy, lambda: LossScale(SGD(0.1, momentum=0.9), initial_scale=8.0))
    before = numbers(model.variables)
    x, y = X[:3].copy(), Y[:3]
    step(on_replicas(strategy, (x, y)))
    x[2, 0] = np.inf  # on replica 2 alone
    step(on_replicas(strategy, (x, y)))
    assert all(np.array_equal(a, b) for a, b in zip(before, numbers(model.variables), strict=True))
    assert optimizer.dynamic_scale.value.numpy() == 4.0
    for _ in range(2):  # the overflow must not stay in the accumulators
        step(on_replicas(strategy, (X[:3], Y[:3])))
    assert all(np.all(np.isfinite(v)) for v in numbers(model.variables))
    assert not np.array_equal(before[0], model.variables[0].value.numpy())


class WithSpare(keras.layers.Dense):
    """A dense layer with one weight that it does not use."""

    def build(self, shape):
        super().build(shape)
        self.spare = self.add_weight(shape=(1,), initializer="ones", name="spare")


def test_a_variable_that_is_no_part_of_the_loss_does_not_decay(strategy_with):
    """One device leaves it out (no gradient); zeros in its place would let weight decay act on it."""
    strategy = strategy_with(2)
    with strategy.scope():
        model = keras.Sequential([keras.layers.Input((3,)), WithSpare(2)])
        optimizer = AdamW(0.1, weight_decay=0.5)
    step = make_accumulating_step(strategy, model, optimizer, "mse", 1, graph=True)
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        step(on_replicas(strategy, batches((4,))[0]))
    assert model.layers[0].spare.value.numpy() == [1.0]
