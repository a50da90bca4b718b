"""k micro-steps are one large batch. Equal micro-batches would not show it: there a mean of means is the mean."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.small import SIZES, assert_same, batches, mlp, trained
from tfdistedu.step.accumulate import make_accumulating_step
from tfdistedu.step.optimizer import SGD, Adam, AdamW
from tfdistedu.step.replica import make_train_step

pytestmark = pytest.mark.usefixtures("float64")

# Two updates of three micro-steps, and a left-over of two. Sizes are ragged, and some replicas are without examples.
MICRO = (4, 3, 1, 2, 5, 2, 1, 3)
LARGE = (8, 9, 4)

OPTIMIZERS = {
    "sgd, momentum": lambda: SGD(0.1, momentum=0.9),
    "sgd, momentum, clip that binds": lambda: SGD(0.1, momentum=0.9, global_clipnorm=0.05),
    "adam, clip by value": lambda: Adam(0.01, clipvalue=0.02),
    "adamw": lambda: AdamW(0.01, weight_decay=0.1, clipnorm=0.1),
}


def mean_squared(y, predictions):
    return keras.ops.mean((y - predictions) ** 2)  # a scalar; NaN on a replica without examples


LOSSES = {
    "mean": lambda: "mse",
    "sum": lambda: keras.losses.MeanSquaredError(reduction="sum"),
    "scalar": lambda: mean_squared,
}


def accumulated(strategy, loss, optimizer, graph=True, micro=MICRO, k=3):
    def step(*parts):
        return make_accumulating_step(*parts, LOSSES[loss](), n_micro_steps=k, graph=graph)

    return trained(strategy, lambda: mlp(l2=0.05), OPTIMIZERS[optimizer], step, batches(micro))


def one_large_batch(strategy_with, loss, optimizer, sizes=LARGE):
    def step(*parts):
        return make_train_step(*parts, LOSSES[loss](), graph=False)

    return trained(strategy_with(1), lambda: mlp(l2=0.05), OPTIMIZERS[optimizer], step, batches(sizes))


@pytest.mark.parametrize(
    ("loss", "optimizer"),
    [
        *[("mean", optimizer) for optimizer in OPTIMIZERS],
        ("sum", "adamw"),
        ("scalar", "sgd, momentum, clip that binds"),
    ],
)
def test_ragged_micro_steps_on_three_replicas_equal_large_batches_on_one_device(strategy_with, loss, optimizer):
    graph = optimizer != "sgd, momentum"  # tracing is what costs here; every other thing has its graph
    weights, _ = accumulated(strategy_with(3), loss, optimizer, graph=graph)
    assert_same(weights, one_large_batch(strategy_with, loss, optimizer)[0])


@pytest.mark.parametrize(("n", "loss", "graph"), [(1, "sum", True), (2, "mean", False), (4, "sum", False)])
def test_any_number_of_replicas_and_eager_give_the_same(strategy_with, n, loss, graph):
    weights, _ = accumulated(strategy_with(n), loss, "sgd, momentum", graph=graph)
    assert_same(weights, one_large_batch(strategy_with, loss, "sgd, momentum")[0])


def test_the_l2_penalty_is_felt_and_counts_once(strategy_with):
    """Without this, the tests above would pass with a penalty that both ways leave out."""
    with_penalty = one_large_batch(strategy_with, "sum", "sgd, momentum")[0]
    without = trained(
        strategy_with(1),
        mlp,
        OPTIMIZERS["sgd, momentum"],
        lambda *parts: make_train_step(*parts, LOSSES["sum"](), graph=False),
        batches(LARGE),
    )[0]
    assert max(np.abs(a - b).max() for a, b in zip(with_penalty, without, strict=True)) > 1e-4


def test_the_losses_are_those_of_the_micro_batches(strategy_with):
    """With k = 1 each micro-step is a step, so the losses are known."""
    _, losses = accumulated(strategy_with(3), "sum", "sgd, momentum", micro=SIZES, k=1, graph=False)
    assert_same(losses, one_large_batch(strategy_with, "sum", "sgd, momentum", sizes=SIZES)[1])


def test_a_mean_of_the_micro_steps_means_would_be_something_else(strategy_with):
    """Shows that the sizes above tell the two apart, by more than the tolerance a billion times."""
    large = one_large_batch(strategy_with, "mean", "sgd, momentum", sizes=(8,))[0]
    with strategy_with(1).scope():
        model = mlp(l2=0.05)
    gradients = []
    for x, y in batches(MICRO[:3]):
        with tf.GradientTape() as tape:
            loss = keras.ops.mean((model(x) - y) ** 2) + sum(model.losses)
        gradients.append(tape.gradient(loss, model.trainable_variables))
    wrong = [np.mean(parts, axis=0) for parts in zip(*gradients, strict=True)]
    moved = [v.value.numpy() - 0.1 * g for v, g in zip(model.variables, wrong, strict=True)]
    assert max(np.abs(a - b).max() for a, b in zip(moved, large, strict=True)) > 1e-3
