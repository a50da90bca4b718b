"""Metrics: where they may be updated, and what the result then means."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.traps.oracle import on_each_replica, per_replica

PARTS = [np.array([1.0, 3.0, 5.0]), np.array([7.0])]  # ragged: a mean of means would be 5


@pytest.mark.upstream
def test_a_metric_updated_on_replicas_and_read_outside_is_the_mean_over_all_examples(upstream_mirrored):
    strategy = upstream_mirrored(2)
    with strategy.scope():
        metric = keras.metrics.Mean(dtype="float64")
    strategy.run(metric.update_state, args=(per_replica(strategy, PARTS),))
    np.testing.assert_allclose(metric.result(), np.concatenate(PARTS).mean(), rtol=1e-12)


@pytest.mark.upstream
def test_a_metric_read_on_replicas_is_each_replicas_own_mean(upstream_mirrored):
    strategy = upstream_mirrored(2)
    with strategy.scope():
        metric = keras.metrics.Mean(dtype="float64")
    strategy.run(metric.update_state, args=(per_replica(strategy, PARTS),))
    own = on_each_replica(strategy, strategy.run(metric.result))
    np.testing.assert_allclose(own, [part.mean() for part in PARTS], rtol=1e-12)


@pytest.mark.upstream
def test_a_keras_metric_updated_outside_of_run_is_right(upstream_mirrored):
    strategy = upstream_mirrored(2)
    with strategy.scope():
        metric = keras.metrics.Mean(dtype="float64")
        metric.update_state(np.concatenate(PARTS))
    np.testing.assert_allclose(metric.result(), np.concatenate(PARTS).mean(), rtol=1e-12)


@pytest.mark.upstream
@pytest.mark.xfail(
    strict=True, raises=ValueError, reason="SyncOnReadVariable does not support assign_add in cross-replica context"
)
def test_a_tf_keras_metric_updated_outside_of_run_is_right(upstream_mirrored):
    import tf_keras

    with upstream_mirrored(2).scope():
        metric = tf_keras.metrics.Mean()
        metric.update_state(np.concatenate(PARTS))
    np.testing.assert_allclose(metric.result(), np.concatenate(PARTS).mean(), rtol=1e-6)


def test_our_step_updates_metrics_over_all_examples_also_ragged(strategy_with, float64):
    from tfdistedu.data.batches import on_replicas
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step

    strategy, generator = strategy_with(4), np.random.default_rng(0)
    batches = [(generator.normal(size=(n, 2)), generator.normal(size=(n, 1))) for n in (7, 2)]
    with strategy.scope():
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model, metric = keras.Sequential([keras.layers.Input((2,)), layer]), keras.metrics.MeanSquaredError()
        optimizer = SGD(0.0)
    step = make_train_step(strategy, model, optimizer, "mse", metrics=[metric], graph=False)
    for batch in batches:
        step(on_replicas(strategy, batch))
    expected = np.square(np.concatenate([y for _, y in batches])).mean()
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-12)
