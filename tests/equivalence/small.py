"""Small data, small models and one comparison, shared by the tests of equivalence with one device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tfdistedu.data.batches import on_replicas
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

RNG = np.random.default_rng(7)
X = RNG.normal(size=(64, 3))
Y = RNG.normal(size=(64, 2))

# Full, ragged, fewer than replicas, one example: replicas 1 to 3 are without examples in some of them.
SIZES = (8, 7, 3, 1, 5)

# float64 carries 16 digits; a few steps of sums over at most 8 examples, added in another order, cost two or three.
# Real mistakes (one example counted twice, a penalty counted twice) are 1e-3 and more here.
TOLERANCE = 1e-12


def batches(sizes: Sequence[int] = SIZES, *arrays: np.ndarray) -> list[tuple[np.ndarray, ...]]:
    """Cut the data into global batches of these sizes, one after the other."""
    arrays = arrays or (X, Y)
    ends = np.cumsum(sizes)
    return [tuple(array[start:end] for array in arrays) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def mlp(l2: float = 0.0) -> keras.Model:
    """Build 3 -> 4 -> 2, with an L2 penalty on the kernels if asked."""
    keras.utils.set_random_seed(0)
    penalty = keras.regularizers.L2(l2) if l2 else None
    return keras.Sequential(
        [
            keras.layers.Input((3,)),
            keras.layers.Dense(4, activation="tanh", kernel_regularizer=penalty),
            keras.layers.Dense(2, kernel_regularizer=penalty),
        ]
    )


def trained(
    strategy: tf.distribute.Strategy,
    build: Callable[[], keras.Model],
    make_optimizer: Callable[[], keras.optimizers.Optimizer],
    make_step: Callable,
    global_batches: Sequence[tuple[np.ndarray, ...]],
) -> tuple[list[np.ndarray], list[float]]:
    """Train under a strategy; give the weights (all variables) and the losses."""
    with strategy.scope():
        model, optimizer = build(), make_optimizer()
    step = make_step(strategy, model, optimizer)
    losses = [float(step(on_replicas(strategy, batch))) for batch in global_batches]
    if hasattr(step, "flush"):
        step.flush()
    check_copies_equal(strategy, [*model.variables, *optimizer.variables])
    return numbers(model.variables), losses


def numbers(variables: Sequence) -> list[np.ndarray]:
    """Read Keras variables into NumPy arrays."""
    return [variable.value.numpy() for variable in variables]


def check_copies_equal(strategy: tf.distribute.Strategy, variables: Sequence) -> None:
    """Check that every replica holds the same bits: a mean over replicas would hide that they drifted apart."""
    for variable in variables:
        first, *others = (copy.numpy() for copy in strategy.experimental_local_results(variable.value))
        for other in others:
            np.testing.assert_array_equal(other, first, err_msg=variable.path)


def assert_same(actual: Sequence, expected: Sequence, tolerance: float = TOLERANCE) -> None:
    """Compare lists of arrays, and refuse a comparison of nothing or of NaN with NaN."""
    assert len(actual) == len(expected) > 0
    for one, other in zip(actual, expected, strict=True):
        assert np.all(np.isfinite(other))
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)
