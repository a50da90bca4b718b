"""Dropout on replicas: other masks, the same again in the next run, and on one device Keras's own."""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.small import X, Y
from tfdistedu.errors import BadInput
from tfdistedu.step.dropout import ReplicaDropout, ReplicaSeedGenerator
from tfdistedu.step.optimizer import SGD
from tfdistedu.step.parts import ReplicaWarning, check_layers


def masks(strategy, layer, steps=2, graph=False, shape=(4, 64)):
    """Give the masks as [step, replica, ...] of 0 and 1."""

    def run():
        return strategy.run(lambda: layer(tf.ones(shape), training=True))

    run = tf.function(run) if graph else run
    return np.array([[copy.numpy() != 0 for copy in strategy.experimental_local_results(run())] for _ in range(steps)])


def dropout(strategy, rate=0.5, seed=3, kind=ReplicaDropout):
    with strategy.scope():
        return kind(rate, seed=seed)


@pytest.mark.parametrize("graph", [True, False])
def test_masks_differ_between_replicas_and_steps_and_are_the_same_in_the_next_run(strategy_with, graph):
    strategy = strategy_with(3)
    first = masks(strategy, dropout(strategy), graph=graph)
    flat = first.reshape(6, -1)
    agreement = (flat[:, None] == flat[None]).mean(-1)
    # Two fair masks of 256 agree in half of the places; 5 standard deviations are 0.16. The same mask would be 1.
    assert np.all(np.abs(agreement[~np.eye(6, dtype=bool)] - 0.5) < 0.16)
    assert np.array_equal(masks(strategy, dropout(strategy), graph=graph), first)
    assert not np.array_equal(masks(strategy, dropout(strategy, seed=4), graph=graph), first)


def test_graph_and_eager_draw_the_same_masks(strategy_with):
    strategy = strategy_with(2)
    assert np.array_equal(masks(strategy, dropout(strategy), graph=True), masks(strategy, dropout(strategy)))


def test_keras_draws_the_same_mask_on_every_replica(strategy_with):
    """What the layer is there for."""
    strategy = strategy_with(2)
    plain = masks(strategy, dropout(strategy, kind=keras.layers.Dropout))
    assert np.array_equal(plain[:, 0], plain[:, 1])


def test_on_one_device_it_is_keras_dropout(strategy_with):
    one = strategy_with(1)
    assert np.array_equal(masks(one, dropout(one)), masks(one, dropout(one, kind=keras.layers.Dropout)))


@pytest.mark.parametrize("rate", [0.1, 0.75])
def test_the_rate_is_right_on_every_replica_and_the_mean_is_kept(strategy_with, rate):
    strategy = strategy_with(4)
    layer = dropout(strategy, rate)
    kept = masks(strategy, layer, steps=1, shape=(100, 100))[0].reshape(4, -1).mean(1)
    # 10,000 draws: 5 standard deviations of the share are at most 0.022.
    assert np.all(np.abs(kept - (1 - rate)) < 0.022)
    value = strategy.run(lambda: tf.reduce_max(layer(tf.ones([100, 100]), training=True)))
    assert all(float(copy) == pytest.approx(1 / (1 - rate)) for copy in value.values)


def test_rate_zero_and_inference_change_nothing(strategy_with):
    strategy = strategy_with(2)
    assert masks(strategy, dropout(strategy, rate=0.0)).all()
    assert np.array_equal(dropout(strategy)(np.ones((2, 3), "float32"), training=False), np.ones((2, 3)))


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5])
def test_a_rate_outside_of_zero_to_one_is_refused(rate):
    with pytest.raises(BadInput, match="from 0 to below 1"):
        ReplicaDropout(rate)


def test_it_is_saved_and_loaded_as_itself(tmp_path):
    model = keras.Sequential([keras.layers.Input((3,)), ReplicaDropout(0.25, seed=5, noise_shape=(None, 1))])
    model(X[:2], training=True)  # the counter moves on, and is saved
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").layers[0]
    assert (type(loaded), loaded.rate, loaded.seed, loaded.noise_shape) == (ReplicaDropout, 0.25, 5, (None, 1))
    assert isinstance(loaded.seed_generator, ReplicaSeedGenerator)
    assert loaded.seed_generator.state.numpy().tolist() == model.layers[0].seed_generator.state.numpy().tolist()
    again = ReplicaDropout.from_config(loaded.get_config())
    assert again.get_config() == loaded.get_config()


def fitted(strategy):
    with strategy.scope():
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Input((3,)), ReplicaDropout(0.5, seed=1), keras.layers.Dense(2)])
        model.compile(SGD(0.1), "mse", jit_compile=False)
    losses = model.fit(X[:16], Y[:16], batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]
    return losses, model.layers[0].seed_generator.state.value


def test_it_works_in_fit_reproducibly_and_the_state_stays_the_same_on_all_replicas(strategy_with):
    losses, state = fitted(strategy_with(2))
    again, _ = fitted(strategy_with(2))
    assert np.all(np.isfinite(losses))
    assert losses == again
    assert [copy.numpy().tolist() for copy in state.values] == [[1, 4], [1, 4]]  # four steps


def test_the_guard_warns_of_every_layer_that_draws_the_same_everywhere(strategy_with):
    strategy = strategy_with(2)
    with strategy.scope():
        inner = keras.Sequential([keras.layers.Input((3,)), keras.layers.GaussianNoise(0.1, name="noise")])
        model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dropout(0.5, name="drop"), inner])
    with pytest.warns(ReplicaWarning) as caught:
        check_layers(strategy, model)
    assert [str(warning.message).split("'")[1] for warning in caught] == ["drop", "noise"]
    with strategy.scope():
        drops, keeps = (keras.Sequential([keras.Input((3, 2)), keras.layers.LSTM(2, dropout=r)]) for r in (0.5, 0.0))
    with pytest.warns(ReplicaWarning, match="lstm_cell"):
        check_layers(strategy, drops)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_layers(strategy, keeps)  # its cell has a generator all the same, and does not use it
        check_layers(strategy_with(1), model)
        with strategy.scope():
            check_layers(strategy, keras.Sequential([keras.layers.Input((3,)), ReplicaDropout(0.5)]))
