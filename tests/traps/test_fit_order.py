"""Keras `fit`: another order of data under a strategy, and a mean of means where a batch is ragged."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.traps.oracle import StillWrong, right, still_wrong

RATE, N = 0.125, 2
X = np.random.default_rng(0).normal(size=(11, 2))
Y = X @ [[1.0], [-2.0]] + 1.0


def fitted(strategy, dataset, epochs):
    """Fit a linear model without bias, from zero weights; gives its two weights."""
    with strategy.scope():
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", dtype="float64")
        model = keras.Sequential([keras.layers.Input((2,), dtype="float64"), layer])
        model.compile(keras.optimizers.SGD(RATE, momentum=0.5), keras.losses.MeanSquaredError(dtype="float64"))
    model.fit(dataset, epochs=epochs, verbose=0, shuffle=False)
    return layer.kernel.numpy().ravel()


def gradient_of_mean(w, x, y):
    return 2 * x.T @ (x @ w - y) / len(x)


def gradient_of_mean_of_means(w, x, y):
    """Each replica's mean over its ceil(n / N) examples, divided by N."""
    each = -(-len(x) // N)
    parts = [(x[start : start + each], y[start : start + each]) for start in range(0, len(x), each)]
    return sum(gradient_of_mean(w, *part) for part in parts) / N


def descended(batch, epochs, gradient):
    w = velocity = np.zeros((2, 1))
    for _ in range(epochs):
        for start in range(0, len(X), batch):
            velocity = 0.5 * velocity - RATE * gradient(w, X[start : start + batch], Y[start : start + batch])
            w = w + velocity
    return w.ravel()


def shuffled(reshuffle):
    tf.random.set_seed(0)
    dataset = tf.data.Dataset.from_tensor_slices((X[:8], Y[:8]))
    return dataset.shuffle(8, seed=3, reshuffle_each_iteration=reshuffle).batch(4)


@pytest.mark.upstream
@still_wrong("the iterator that reshuffles draws other seeds under a strategy")
def test_data_that_reshuffles_each_epoch_comes_in_one_devices_order(upstream_mirrored):
    one = fitted(tf.distribute.get_strategy(), shuffled(True), epochs=2)
    again = fitted(tf.distribute.get_strategy(), shuffled(True), epochs=2)
    np.testing.assert_array_equal(again, one)  # it is no chance: one device repeats itself
    mirrored = fitted(upstream_mirrored(N), shuffled(True), epochs=2)
    if np.abs(mirrored - one).max() > 1e-4:
        raise StillWrong(f"{mirrored} is not {one}")
    np.testing.assert_allclose(mirrored, one, rtol=1e-10)


@pytest.mark.upstream
def test_data_that_was_shuffled_once_comes_in_one_devices_order(upstream_mirrored):
    one = fitted(tf.distribute.get_strategy(), shuffled(False), epochs=2)
    np.testing.assert_allclose(fitted(upstream_mirrored(N), shuffled(False), epochs=2), one, rtol=1e-10)


def test_our_dataset_has_one_order_in_every_epoch_and_under_every_strategy(strategy_with):
    from tfdistedu.data.batches import batched_dataset

    dataset = batched_dataset((X[:8], Y[:8]), 4, shuffle_seed=3)
    one = fitted(strategy_with(1), dataset, epochs=2)
    np.testing.assert_allclose(fitted(strategy_with(N), dataset, epochs=2), one, rtol=1e-10)


@pytest.mark.upstream
def test_fit_equals_one_device_where_batches_divide_evenly(upstream_mirrored):
    dataset = tf.data.Dataset.from_tensor_slices((X[:8], Y[:8])).batch(4)
    w = velocity = np.zeros((2, 1))
    for start in (0, 4, 0, 4):
        velocity = 0.5 * velocity - RATE * gradient_of_mean(w, X[start : start + 4], Y[start : start + 4])
        w = w + velocity
    np.testing.assert_allclose(fitted(upstream_mirrored(N), dataset, epochs=2), w.ravel(), rtol=1e-10)


@pytest.mark.upstream
@still_wrong("a ragged last batch weighs the smaller replica's examples more: the mean of the replicas' means")
def test_fit_equals_one_device_where_the_last_batch_is_ragged(upstream_mirrored):
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(6)  # 6, then 5: 3 + 2
    got = fitted(upstream_mirrored(N), dataset, epochs=2)
    right(
        got,
        right=descended(6, 2, gradient_of_mean),
        known_wrong=descended(6, 2, gradient_of_mean_of_means),
        rtol=1e-10,
    )


@pytest.mark.upstream
@pytest.mark.xfail(
    strict=True, raises=tf.errors.InvalidArgumentError, reason="the symbolic build adds the replicas' first batches up"
)
def test_fit_starts_where_the_first_batch_is_ragged(upstream_mirrored):
    fitted(upstream_mirrored(N), tf.data.Dataset.from_tensor_slices((X, Y)).batch(7), epochs=1)


@pytest.mark.parametrize("batch", [3, 6, 7])
def test_our_loop_equals_one_device_where_batches_are_ragged(strategy_with, float64, batch):
    from tfdistedu.data.batches import batched_dataset
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step
    from tfdistedu.synchronous.loop import train

    strategy = strategy_with(N)
    with strategy.scope():
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model, optimizer = keras.Sequential([keras.layers.Input((2,)), layer]), SGD(RATE, momentum=0.5)
    step = make_train_step(strategy, model, optimizer, "mse")
    train(strategy, step, batched_dataset((X, Y), batch), epochs=2)
    np.testing.assert_allclose(layer.kernel.numpy().ravel(), descended(batch, 2, gradient_of_mean), rtol=1e-10)
