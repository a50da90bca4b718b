"""Batch normalisation: each replica keeps statistics of its own, unless the layer is synchronised."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.traps.oracle import StillWrong, on_each_replica, per_replica, right, still_wrong

MOMENTUM = 0.75
# Far apart, so that a replica's own mean is not near the global one.
PARTS = [np.array([[0.0], [1.0]]), np.array([[10.0], [13.0]])]
BATCH = np.concatenate(PARTS)


def moving_statistics(strategy, parts, synchronized):
    with strategy.scope():
        layer = keras.layers.BatchNormalization(momentum=MOMENTUM, synchronized=synchronized, dtype="float64")
        layer.build((None, 1))
    strategy.run(lambda x: layer(x, training=True), args=(per_replica(strategy, parts),))
    return [np.ravel(on_each_replica(strategy, v)) for v in (layer.moving_mean, layer.moving_variance)]


def moved(start, statistic):
    return MOMENTUM * start + (1 - MOMENTUM) * statistic


@pytest.mark.upstream
@still_wrong("the moving statistics are not synchronised: each replica keeps its own")
def test_moving_statistics_of_a_plain_layer_are_those_of_the_global_batch(upstream_mirrored):
    got = moving_statistics(upstream_mirrored(2), PARTS, synchronized=False)
    right(
        got,
        right=[[moved(0, BATCH.mean())] * 2, [moved(1, BATCH.var())] * 2],
        known_wrong=[[moved(0, x.mean()) for x in PARTS], [moved(1, x.var()) for x in PARTS]],
    )


@pytest.mark.upstream
def test_moving_statistics_of_a_synchronised_layer_are_those_of_the_global_batch(upstream_mirrored):
    means, variances = moving_statistics(upstream_mirrored(2), PARTS, synchronized=True)
    # The variance is E[x^2] - E[x]^2, which loses a few digits when the mean is not small: 1e-12, not 1e-15.
    np.testing.assert_allclose(means, [moved(0, BATCH.mean())] * 2, rtol=1e-12)
    np.testing.assert_allclose(variances, [moved(1, BATCH.var())] * 2, rtol=1e-12)


@pytest.mark.upstream
@still_wrong("a plain layer divides by the replica's own count, which is 0")
def test_a_replica_without_examples_leaves_finite_statistics_in_a_plain_layer(upstream_mirrored):
    full, empty = PARTS[1], np.zeros((0, 1))
    means, _ = moving_statistics(upstream_mirrored(2), [full, empty], synchronized=False)
    assert means[0] == moved(0, full.mean())
    if np.isnan(means[1]):
        raise StillWrong("NaN on the replica without examples")
    np.testing.assert_allclose(means[1], moved(0, full.mean()), rtol=1e-12)


@pytest.mark.upstream
def test_a_replica_without_examples_is_left_out_by_a_synchronised_layer(upstream_mirrored):
    full, empty = PARTS[1], np.zeros((0, 1))
    means, variances = moving_statistics(upstream_mirrored(2), [full, empty], synchronized=True)
    np.testing.assert_allclose(means, [moved(0, full.mean())] * 2, rtol=1e-12)
    np.testing.assert_allclose(variances, [moved(1, full.var())] * 2, rtol=1e-12)


@pytest.mark.upstream
def test_a_replica_without_examples_does_not_touch_what_a_synchronised_layer_gives_the_others(upstream_mirrored):
    strategy = upstream_mirrored(2)
    with strategy.scope():
        layer = keras.layers.BatchNormalization(synchronized=True, dtype="float64")
        layer.build((None, 1))
    out = strategy.run(lambda x: layer(x, training=True), args=(per_replica(strategy, [PARTS[1], np.zeros((0, 1))]),))
    expected = (PARTS[1] - PARTS[1].mean()) / np.sqrt(PARTS[1].var() + layer.epsilon)
    np.testing.assert_allclose(on_each_replica(strategy, out)[0], expected, rtol=1e-10)


@pytest.mark.parametrize("n_examples", [2, 3, 8])
def test_our_step_with_a_synchronised_layer_equals_one_device_whatever_falls_on_a_replica(
    strategy_with, float64, n_examples
):
    from tfdistedu.data.batches import on_replicas
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step

    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(n_examples, 2)), generator.normal(size=(n_examples, 1))
    weights = {}
    for n_replicas in (1, 4):  # 2 and 3 examples on 4 replicas: some have none
        strategy = strategy_with(n_replicas)
        with strategy.scope():
            keras.utils.set_random_seed(0)
            model = keras.Sequential(
                [
                    keras.layers.Input((2,)),
                    keras.layers.Dense(3),
                    keras.layers.BatchNormalization(momentum=0.5, synchronized=True),
                    keras.layers.Dense(1),
                ]
            )
            optimizer = SGD(0.125, momentum=0.5)
        step = make_train_step(strategy, model, optimizer, "mse", graph=False)
        for _ in range(2):
            step(on_replicas(strategy, (x, y)))
        weights[n_replicas] = model.get_weights()
        assert all(np.isfinite(w).all() for w in weights[n_replicas])
    for one, four in zip(weights[1], weights[4], strict=True):
        # float64 and two steps; the subtraction in the variance costs some digits: 1e-10.
        np.testing.assert_allclose(four, one, rtol=1e-10, atol=1e-10)


@pytest.mark.upstream
def test_tensorflow_reads_the_first_replica_only_when_statistics_differ(upstream_mirrored):
    # This is what gets saved and what evaluation on the host uses: three quarters of the data left no trace.
    strategy = upstream_mirrored(4)
    with strategy.scope():
        layer = keras.layers.BatchNormalization(momentum=0.0, dtype="float64")
        layer.build((None, 1))
    parts = [np.full((2, 1), float(replica)) for replica in (5, 6, 7, 8)]
    strategy.run(lambda x: layer(x, training=True), args=(per_replica(strategy, parts),))
    assert layer.moving_mean.numpy() == [5.0]
    assert tf.convert_to_tensor(layer.moving_mean.value).numpy() == [5.0]
