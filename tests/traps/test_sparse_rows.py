"""Sparse gradients: a row that stands twice must be added up before it is squared or measured."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.traps.oracle import on_each_replica, per_replica, right, still_wrong

N_ROWS, RATE, STEPS = 4, 0.125, 3
# (rows, values) of each replica: a repeat inside a replica, a repeat between replicas, unequal counts, a missing row.
PARTS = [(np.array([0, 1, 0]), np.array([1.0, 2.0, 0.5])), (np.array([0, 2]), np.array([3.0, -1.0]))]
ONE = [(np.array([0, 1, 0]), np.array([1.0, 2.0, 0.5]))]
NOTHING = (np.array([], dtype=np.int64), np.array([]))


def dense(parts):
    total = np.zeros((N_ROWS, 1))
    for rows, values in parts:
        np.add.at(total, rows, values[:, None])
    return total


def trained(strategy, make_optimizer, parts, sparse=True):
    """Give the weights after some steps, with the gradient as row lists or as its dense sum."""
    with strategy.scope():
        weights = keras.Variable(np.zeros((N_ROWS, 1)), dtype="float64")
        optimizer = make_optimizer()
        optimizer.build([weights])

    def replica_step(rows, values):
        gradient = tf.IndexedSlices(values[:, None], rows, tf.constant([N_ROWS, 1], tf.int64))
        if not sparse:
            gradient = tf.math.unsorted_segment_sum(values[:, None], rows, N_ROWS)
        optimizer.apply([gradient], [weights])

    rows, values = (per_replica(strategy, [part[which] for part in parts]) for which in (0, 1))
    for _ in range(STEPS):
        strategy.run(replica_step, args=(rows, values))
    return on_each_replica(strategy, weights)[0]


def second_moments(kind, parts, repeated_rows_added):
    """Do Adam, Adagrad or RMSprop in NumPy; with or without adding repeated rows before the square."""
    gradient = dense(parts)
    squared = gradient**2
    if not repeated_rows_added:
        squared = dense([(rows, values**2) for rows, values in parts])
    weights, m, v = np.zeros((N_ROWS, 1)), 0.0, np.full((N_ROWS, 1), 0.1 if kind == "Adagrad" else 0.0)
    for t in range(1, STEPS + 1):
        if kind == "Adam":
            m, v = m + 0.1 * (gradient - m), v + 0.001 * (squared - v)
            rate = RATE * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            weights = weights - rate * m / (np.sqrt(v) + 1e-7)
        elif kind == "Adagrad":
            v = v + squared
            weights = weights - RATE * gradient / np.sqrt(v + 1e-7)
        else:
            v = 0.9 * v + 0.1 * squared
            weights = weights - RATE * gradient / np.sqrt(v + 1e-7)
    return weights


@pytest.mark.upstream
@still_wrong("the square is taken of each entry, and then added up")
@pytest.mark.parametrize("kind", ["Adam", "Adagrad", "RMSprop"])
@pytest.mark.parametrize("n_replicas", [1, 2])
def test_keras_squares_the_sum_of_repeated_rows(upstream_mirrored, n_replicas, kind):
    parts = PARTS if n_replicas == 2 else ONE
    strategy = upstream_mirrored(2) if n_replicas == 2 else tf.distribute.get_strategy()
    got = trained(strategy, lambda: getattr(keras.optimizers, kind)(RATE), parts)
    # 1 - 0.999 ** t in float32 leaves four digits.
    right(
        got,
        right=second_moments(kind, parts, repeated_rows_added=True),
        known_wrong=second_moments(kind, parts, repeated_rows_added=False),
        rtol=1e-4,
    )


@pytest.mark.upstream
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_keras_sgd_may_add_repeated_rows_one_by_one(upstream_mirrored, momentum):
    strategy = upstream_mirrored(2)
    got = trained(strategy, lambda: keras.optimizers.SGD(RATE, momentum=momentum), PARTS)
    # Velocities 1, 1 + m, 1 + m + m^2 times the gradient of one step.
    factor = sum((STEPS - k) * momentum**k for k in range(STEPS))
    np.testing.assert_allclose(got, -RATE * dense(PARTS) * factor, rtol=1e-12)


def norm_of_parts(parts):
    return np.sqrt(sum(np.square(values).sum() for _, values in parts))


@pytest.mark.upstream
@still_wrong("a norm counts the entries of a repeated row each for itself")
@pytest.mark.parametrize("setting", ["clipnorm", "global_clipnorm"])
def test_keras_measures_the_sum_of_repeated_rows(setting):
    got = trained(tf.distribute.get_strategy(), lambda: keras.optimizers.SGD(RATE, **{setting: 1.0}), ONE)
    gradient = dense(ONE)
    right(
        got,
        right=-RATE * STEPS * gradient / np.linalg.norm(gradient),
        known_wrong=-RATE * STEPS * gradient / norm_of_parts(ONE),
    )


@pytest.mark.parametrize("settings", [{}, {"global_clipnorm": 1.0}, {"clipnorm": 1.0}, {"clipvalue": 0.5}], ids=str)
@pytest.mark.parametrize("kind", ["SGD", "Adam", "Adagrad", "RMSprop"])
@pytest.mark.parametrize("parts", [PARTS, [PARTS[0], NOTHING]], ids=["uneven", "one_without_rows"])
def test_ours_gives_what_the_dense_gradient_gives_on_one_device(strategy_with, parts, kind, settings):
    import tfdistedu.step.optimizer as ours

    got = trained(strategy_with(2), lambda: getattr(ours, kind)(RATE, **settings), parts)
    whole = [tuple(np.concatenate(pieces) for pieces in zip(*parts, strict=True))]
    expected = trained(
        tf.distribute.get_strategy(), lambda: getattr(keras.optimizers, kind)(RATE, **settings), whole, sparse=False
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.upstream
@pytest.mark.parametrize("parts", [PARTS, [PARTS[0], NOTHING]], ids=["uneven", "one_without_rows"])
def test_an_all_reduce_of_row_lists_is_the_sum_of_the_dense_ones(upstream_mirrored, parts):
    strategy = upstream_mirrored(2)

    def add(rows, values):
        mine = tf.IndexedSlices(values[:, None], rows, tf.constant([N_ROWS, 1], tf.int64))
        return tf.convert_to_tensor(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, mine))

    rows, values = (per_replica(strategy, [part[which] for part in parts]) for which in (0, 1))
    for copy in on_each_replica(strategy, strategy.run(add, args=(rows, values))):
        np.testing.assert_allclose(copy, dense(parts), rtol=1e-12)
