"""What is right, in NumPy, and the verdict: right, wrong in the known way, or something new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf


class StillWrong(AssertionError):
    """Upstream gives the known wrong value; anything else that is not right stays a plain AssertionError."""


def still_wrong(reason: str) -> pytest.MarkDecorator:
    """Mark a test of upstream that is wrong today in exactly the known way."""
    return pytest.mark.xfail(strict=True, raises=StillWrong, reason=reason)


def right(got: Any, right: Any, known_wrong: Any, rtol: float = 1e-12) -> None:
    """Pass if `got` is right, raise StillWrong if it is wrong as known, and AssertionError if it is neither.

    The plain `assert_allclose` in an xfail test would also hide a new fault. rtol is for float64: some ten roundings.
    """
    right, known_wrong = np.asarray(right), np.asarray(known_wrong)
    assert not np.allclose(right, known_wrong, rtol=10 * rtol, atol=10 * rtol), "this case cannot tell them apart"
    if np.allclose(got, right, rtol=rtol, atol=rtol):
        return
    np.testing.assert_allclose(got, known_wrong, rtol=rtol, atol=rtol, err_msg="neither right nor wrong as known")
    raise StillWrong(f"got {np.asarray(got).tolist()}, right is {right.tolist()}")


def per_replica(strategy: Any, values: Sequence[Any]) -> Any:
    """Hand each replica its own value."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(values[context.replica_id_in_sync_group])
    )


def on_each_replica(strategy: Any, value: Any) -> list[np.ndarray]:
    """Read a variable's or a result's copy on each replica."""
    value = getattr(value, "value", value) if isinstance(value, keras.Variable) else value
    return [np.asarray(copy) for copy in strategy.experimental_local_results(value)]


def weights_after(
    strategy: Any,
    make_optimizer: Callable[[], Any],
    gradients: Sequence[Any],
    steps: int = 1,
    build: bool = True,
    graph: bool = False,
) -> np.ndarray:
    """Apply the replicas' own gradients, float64 arrays of one shape, to weights that start at 0."""
    with strategy.scope():
        weights = keras.Variable(np.zeros_like(gradients[0]), dtype="float64")
        optimizer = make_optimizer()
        if build:
            optimizer.build([weights])

    def step(gradient: Any) -> None:
        strategy.run(lambda mine: optimizer.apply([mine], [weights]), args=(gradient,))

    step = tf.function(step) if graph else step
    for _ in range(steps):
        step(per_replica(strategy, gradients))
    copies = on_each_replica(strategy, weights)
    assert all(np.array_equal(copy, copies[0]) for copy in copies), "the replicas hold different weights"
    return copies[0]


def clipped(gradient: np.ndarray, setting: str, limit: float) -> np.ndarray:
    """Clip one gradient; with one variable the norm and the global norm are the same."""
    if setting == "clipvalue":
        return np.clip(gradient, -limit, limit)
    return gradient * min(1.0, limit / np.linalg.norm(gradient))


def adam(gradients: Sequence[np.ndarray], rate: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-7):
    """Return the weights, from 0, after one step of Adam a gradient (Kingma and Ba, 2015, algorithm 1, last form)."""
    w = m = v = np.zeros_like(gradients[0])
    for t, g in enumerate(gradients, 1):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        w = w - rate * np.sqrt(1 - b2**t) / (1 - b1**t) * m / (np.sqrt(v) + eps)
    return w
