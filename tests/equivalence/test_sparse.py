"""An embedding trained with sparse gradients equals the same table trained with dense ones, on one device."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.small import RNG, assert_same, batches, trained
from tfdistedu.step.cross_replica import make_cross_replica_step
from tfdistedu.step.optimizer import SGD, Adagrad, Adam, AdamW, RMSprop, all_reduce_sum, reduce_first
from tfdistedu.step.precision import LossScale
from tfdistedu.step.replica import make_train_step

pytestmark = pytest.mark.usefixtures("float64")

ROWS = 7
IDS = RNG.integers(0, ROWS - 1, size=(64, 3)).astype("int32")  # row 6 is looked up by nobody
IDS[:4] = 2  # in the first batches one row again and again, on every replica
IDS[8:11] = 0  # in the second batch row 0 on replica 0 only
IDS[11:15] = np.maximum(IDS[11:15], 1)
LABELS = RNG.normal(size=(64, 2))
SIZES = (8, 7, 3, 1, 5)


class DenseLookUp(keras.layers.Embedding):
    """The same table, looked up by a product with ones and zeros: its gradient is dense."""

    def call(self, rows):
        return keras.ops.matmul(keras.ops.one_hot(rows, ROWS, dtype="float64"), self.embeddings)


def embedding_model(layer):
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [keras.layers.Input((3,), dtype="int32"), layer(ROWS, 4), keras.layers.Flatten(), keras.layers.Dense(2)]
    )


OPTIMIZERS = {
    "SGD": lambda **clip: SGD(0.05, **clip),
    "momentum": lambda **clip: SGD(0.05, momentum=0.9, nesterov=True, **clip),
    "Adam": lambda **clip: Adam(0.05, amsgrad=True, **clip),
    "AdamW": lambda **clip: AdamW(0.05, weight_decay=0.1, **clip),
    "Adagrad": lambda **clip: Adagrad(0.05, **clip),
    "RMSprop": lambda **clip: RMSprop(0.05, momentum=0.9, centered=True, **clip),
}
CLIPS = {"none": {}, "clipnorm": {"clipnorm": 0.05}, "global": {"global_clipnorm": 0.05}, "value": {"clipvalue": 0.02}}
CASES = [
    *[(optimizer, "global") for optimizer in OPTIMIZERS],
    *[("Adam", clip) for clip in ("none", "clipnorm", "value")],
    ("momentum", "clipnorm"),
    ("AdamW", "value"),
]


def train(strategy, layer, make_optimizer, graph=True, make=make_train_step, sizes=SIZES):
    return trained(
        strategy,
        lambda: embedding_model(layer),
        make_optimizer,
        lambda *parts: make(*parts, "mse", graph=graph),
        batches(sizes, IDS, LABELS),
    )[0]


@pytest.mark.parametrize(("optimizer", "clip"), CASES)
def test_sparse_gradients_on_three_replicas_equal_the_dense_ones_on_one_device(strategy_with, optimizer, clip):
    def make():
        return OPTIMIZERS[optimizer](**CLIPS[clip])

    # A graph for two of them: tracing costs ten times the steps, and the way of the gradients is the same.
    graph = optimizer in ("SGD", "Adam") and clip == "global"
    weights = train(strategy_with(3), keras.layers.Embedding, make, graph=graph)
    assert_same(weights, train(strategy_with(1), DenseLookUp, make, graph=False))


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_one_device_with_our_optimizers_is_right_too(strategy_with, optimizer, clip):
    def make():
        return OPTIMIZERS[optimizer](**CLIPS[clip])

    one = strategy_with(1)
    assert_same(
        train(one, keras.layers.Embedding, make, graph=False, sizes=(4, 3)),
        train(one, DenseLookUp, make, graph=False, sizes=(4, 3)),
    )


@pytest.mark.parametrize("name", ["Adadelta", "Adafactor", "Adamax", "Ftrl", "Lamb", "Lion", "Muon", "Nadam"])
def test_any_other_keras_optimizer_is_right_after_reduce_first(strategy_with, name):
    def make():
        return reduce_first(getattr(keras.optimizers, name))(0.05, clipnorm=0.1)

    one = strategy_with(1)
    assert_same(
        train(one, keras.layers.Embedding, make, graph=False, sizes=(4, 3)),
        train(one, DenseLookUp, make, graph=False, sizes=(4, 3)),
    )


def test_eager_and_four_replicas_give_the_same(strategy_with):
    make = OPTIMIZERS["Adam"]
    weights = train(strategy_with(4), keras.layers.Embedding, make, graph=False)
    assert_same(weights, train(strategy_with(1), DenseLookUp, make, graph=False))


def test_the_cross_replica_step_adds_repeated_rows_too(strategy_with):
    def plain():
        return keras.optimizers.Adam(0.05, global_clipnorm=0.05)

    weights = train(strategy_with(2), keras.layers.Embedding, plain, make=make_cross_replica_step)
    assert_same(weights, train(strategy_with(1), DenseLookUp, plain, graph=False))


def test_loss_scaling_takes_sparse_gradients(strategy_with):
    """A power of two scales without rounding."""
    weights = train(
        strategy_with(2),
        keras.layers.Embedding,
        lambda: LossScale(Adam(0.05, clipnorm=0.1), initial_scale=64.0),
        graph=False,
    )
    assert_same(weights, train(strategy_with(1), DenseLookUp, lambda: Adam(0.05, clipnorm=0.1), graph=False))


def test_the_tests_above_really_have_sparse_gradients_with_repeated_rows(strategy_with):
    """A table whose gradient came dense would make every test above pass with nothing tested."""
    model = embedding_model(keras.layers.Embedding)
    with tf.GradientTape() as tape:
        loss = keras.ops.mean(model(IDS[:4]))
    gradient = tape.gradient(loss, model.trainable_variables)[0]
    assert isinstance(gradient, tf.IndexedSlices)
    assert gradient.indices.numpy().ravel().tolist() == [2] * 12
    (summed,) = all_reduce_sum([gradient])
    assert summed.indices.numpy().tolist() == [2]


def test_keras_as_shipped_differs_on_one_device(strategy_with):
    """Repeated rows are squared before they are summed; so the dense oracle is needed, not Keras's own result."""

    def plain():
        return keras.optimizers.Adam(0.05)

    one = strategy_with(1)
    sparse = train(one, keras.layers.Embedding, plain, graph=False)
    dense = train(one, DenseLookUp, plain, graph=False)
    assert max(np.abs(a - b).max() for a, b in zip(sparse, dense, strict=True)) > 1e-3
