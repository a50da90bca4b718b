"""The loss: who divides by what. Keras divides some losses by the number of replicas, and some not."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.traps.oracle import StillWrong, on_each_replica, per_replica, right, still_wrong, weights_after

N = 4
SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


def squares(labels):
    """The squared errors of predictions that are all 0."""
    return np.square(labels)


def shares_added(strategy, loss, parts):
    """Call a loss on every replica, and add up what came: what the gradients of a custom loop add up to.

    In a graph that does not know the batch size, as in a loop over a dataset (see the last but one test for why).
    """

    def share(y):
        y = tf.compat.v1.placeholder_with_default(y, (None, 1))
        return loss(y, tf.zeros_like(y))

    @tf.function(autograph=False)
    def added(y):
        return strategy.reduce(SUM, strategy.run(share, args=(y,)), axis=None)

    return added(per_replica(strategy, parts)).numpy()


def labels(*counts):
    generator = np.random.default_rng(sum(counts))
    return [generator.normal(size=(count, 1)) for count in counts]


@pytest.mark.upstream
def test_a_mean_loss_is_already_divided_by_the_replicas(upstream_mirrored):
    parts = labels(2, 2, 2, 2)
    got = shares_added(upstream_mirrored(N), keras.losses.MeanSquaredError(dtype="float64"), parts)
    np.testing.assert_allclose(got, squares(np.concatenate(parts)).mean(), rtol=1e-12)


@pytest.mark.upstream
def test_dividing_a_mean_loss_by_the_replicas_as_one_was_told_to_divides_twice(upstream_mirrored):
    parts = labels(2, 2, 2, 2)
    loss = keras.losses.MeanSquaredError(dtype="float64")
    got = shares_added(upstream_mirrored(N), lambda y, p: loss(y, p) / N, parts)
    np.testing.assert_allclose(got, squares(np.concatenate(parts)).mean() / N, rtol=1e-12)


@pytest.mark.upstream
def test_a_sum_loss_is_not_divided_and_adds_up_to_one_device(upstream_mirrored):
    parts = labels(3, 1, 0, 2)
    got = shares_added(upstream_mirrored(N), keras.losses.MeanSquaredError(reduction="sum", dtype="float64"), parts)
    np.testing.assert_allclose(got, squares(np.concatenate(parts)).sum(), rtol=1e-12)


@pytest.mark.upstream
def test_a_loss_that_is_already_a_scalar_is_not_divided_so_it_counts_once_a_replica(upstream_mirrored):
    parts = labels(2, 2, 2, 2)
    got = shares_added(upstream_mirrored(N), lambda y, p: tf.reduce_mean(tf.square(y - p)), parts)
    np.testing.assert_allclose(got, N * squares(np.concatenate(parts)).mean(), rtol=1e-12)


@pytest.mark.upstream
@still_wrong("Keras divides by the replica's own count and by the number of replicas: a mean of means")
@pytest.mark.parametrize("counts", [(3, 3, 3, 1), (2, 1, 0, 0)], ids=["ragged", "empty"])
def test_mean_losses_add_up_to_one_device_when_replicas_have_unequal_counts(upstream_mirrored, counts):
    parts = labels(*counts)
    got = shares_added(upstream_mirrored(N), keras.losses.MeanSquaredError(dtype="float64"), parts)
    right(
        got,
        right=squares(np.concatenate(parts)).mean(),
        known_wrong=sum(squares(part).mean() for part in parts if len(part)) / N,
    )


@pytest.mark.parametrize("kind", ["mean", "sum", "scalar"])
@pytest.mark.parametrize("counts", [(2, 2, 2, 2), (3, 3, 3, 1), (2, 1, 0, 0)], ids=["even", "ragged", "empty"])
def test_our_shares_add_up_to_one_device_for_every_kind_of_loss_and_every_count(strategy_with, counts, kind):
    from tfdistedu.step.loss import loss_share

    loss = {
        "mean": keras.losses.MeanSquaredError(dtype="float64"),
        "sum": keras.losses.MeanSquaredError(reduction="sum", dtype="float64"),
        "scalar": lambda y, p: tf.reduce_mean(tf.square(y - p)),
    }[kind]
    parts = labels(*counts)
    got = shares_added(strategy_with(N), lambda y, p: loss_share(loss, y, p, sum(counts)), parts)
    whole = squares(np.concatenate(parts))
    np.testing.assert_allclose(got, whole.sum() if kind == "sum" else whole.mean(), rtol=1e-12)


@pytest.mark.upstream
def test_the_optimizer_adds_gradients_up_by_itself_so_reducing_first_multiplies_by_the_replicas(upstream_mirrored):
    strategy, parts = upstream_mirrored(2), [np.array([1.0, -2.0]), np.array([3.0, 0.5])]

    class ReducesTwice(keras.optimizers.SGD):
        def apply(self, gradients, variables):
            context = tf.distribute.get_replica_context()
            super().apply([context.all_reduce(SUM, gradient) for gradient in gradients], variables)

    once = weights_after(strategy, lambda: keras.optimizers.SGD(0.5), parts)
    twice = weights_after(strategy, lambda: ReducesTwice(0.5), parts)
    np.testing.assert_allclose(once, -0.5 * sum(parts), rtol=1e-12)
    np.testing.assert_allclose(twice, -0.5 * sum(parts) * 2, rtol=1e-12)


def test_our_optimizer_adds_up_once_in_replica_context_and_takes_reduced_gradients_outside(strategy_with):
    from tfdistedu.step.optimizer import SGD

    strategy, parts = strategy_with(2), [np.array([1.0, -2.0]), np.array([3.0, 0.5])]
    np.testing.assert_allclose(weights_after(strategy, lambda: SGD(0.5), parts), -0.5 * sum(parts), rtol=1e-12)
    with strategy.scope():
        weights, optimizer = keras.Variable(np.zeros(2), dtype="float64"), SGD(0.5)
        optimizer.build([weights])
    optimizer.apply([strategy.reduce(SUM, per_replica(strategy, parts), axis=None)], [weights])
    np.testing.assert_allclose(on_each_replica(strategy, weights), [-0.5 * sum(parts)] * 2, rtol=1e-12)


@pytest.mark.upstream
def test_shares_of_the_global_batch_reported_with_mean_are_n_times_too_small(upstream_mirrored):
    strategy, parts = upstream_mirrored(N), labels(3, 3, 3, 1)
    whole = squares(np.concatenate(parts)).mean()

    def share(y):
        return tf.nn.compute_average_loss(tf.square(y)[:, 0], global_batch_size=10)

    shares = strategy.run(share, args=(per_replica(strategy, parts),))
    np.testing.assert_allclose(strategy.reduce(SUM, shares, axis=None), whole, rtol=1e-12)
    np.testing.assert_allclose(strategy.reduce(MEAN, shares, axis=None), whole / N, rtol=1e-12)


@pytest.mark.upstream
def test_an_own_mean_is_nan_on_a_replica_without_examples_and_spoils_the_sum(upstream_mirrored):
    got = shares_added(upstream_mirrored(N), lambda y, p: tf.reduce_mean(tf.square(y - p)) / N, labels(2, 2, 1, 0))
    assert np.isnan(got)


@pytest.mark.upstream
@still_wrong("Keras does not reduce a batch that it knows to be empty: a vector without entries in place of a scalar")
@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size"])
def test_a_reduced_loss_of_an_empty_batch_is_a_scalar(reduction):
    got = keras.losses.MeanSquaredError(reduction=reduction)(np.zeros((0, 1)), np.zeros((0, 1)))
    if got.shape == (0,):
        raise StillWrong("shape [0]: strategy.reduce then fails in AddN")
    assert got.shape == ()


@pytest.mark.parametrize("n_examples", range(1, 2 * N + 2))
def test_our_step_reports_and_takes_the_loss_of_the_global_batch_for_every_number_of_examples(
    strategy_with, float64, n_examples
):
    from tfdistedu.data.batches import on_replicas
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step

    strategy, generator = strategy_with(N), np.random.default_rng(n_examples)
    x, y = generator.normal(size=(n_examples, 2)), generator.normal(size=(n_examples, 1))
    with strategy.scope():
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model, optimizer = keras.Sequential([keras.layers.Input((2,)), layer]), SGD(0.5)
    # An own mean: NaN on an empty replica, were it not for the guard.
    step = make_train_step(strategy, model, optimizer, lambda y, p: tf.reduce_mean(tf.square(y - p)), graph=False)
    loss = step(on_replicas(strategy, (x, y)))
    np.testing.assert_allclose(loss, squares(y).mean(), rtol=1e-12)
    np.testing.assert_allclose(layer.kernel.numpy(), 0.5 * 2 * x.T @ y / n_examples, rtol=1e-10)
