"""Keras's own gradient accumulation: it reduces inside a branch, which TensorFlow refuses in a graph."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.traps.oracle import weights_after

RATE = 0.5
PARTS = [np.array([1.0, 2.0]), np.array([3.0, -1.0])]
TWO_STEPS = -RATE * sum(PARTS)  # two micro-steps with the same gradient: one update with their mean


def accumulating(optimizer_class):
    return lambda: optimizer_class(RATE, gradient_accumulation_steps=2)


@pytest.mark.upstream
@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="merge_call called while defining a new graph: ops.cond")
def test_keras_accumulates_on_replicas_in_a_graph(upstream_mirrored):
    got = weights_after(upstream_mirrored(2), accumulating(keras.optimizers.SGD), PARTS, steps=2, graph=True)
    np.testing.assert_allclose(got, TWO_STEPS, rtol=1e-12)


@pytest.mark.upstream
def test_keras_accumulates_on_replicas_eagerly(upstream_mirrored):
    got = weights_after(upstream_mirrored(2), accumulating(keras.optimizers.SGD), PARTS, steps=2, graph=False)
    np.testing.assert_allclose(got, TWO_STEPS, rtol=1e-12)


def test_our_optimizer_and_our_step_refuse_it_on_replicas_and_name_what_to_use(strategy_with):
    from tfdistedu.errors import BadInput
    from tfdistedu.models import digits_mlp
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step

    strategy = strategy_with(2)
    with strategy.scope():
        with pytest.raises(BadInput, match="make_accumulating_step"):
            accumulating(SGD)()
        model, optimizer = digits_mlp(hidden=2), accumulating(keras.optimizers.SGD)()
    with pytest.raises(BadInput, match="gradient_accumulation_steps=2"):
        make_train_step(strategy, model, optimizer, "mse")
