"""The data and the models that every lesson uses: real, small, and the same everywhere."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.equivalence.small import numbers
from tfdistedu.data.batches import batched_dataset, replica_batch_sizes, split_on_replicas
from tfdistedu.data.digits import N_CLASSES, N_TRAIN, load_digits
from tfdistedu.errors import BadInput
from tfdistedu.models import digits_convnet, digits_mlp
from tfdistedu.step.batch_norm import BatchNormalization
from tfdistedu.step.dropout import ReplicaDropout


def test_the_digits_are_all_there_once_scaled_and_of_every_class():
    digits = load_digits()
    assert digits.x_train.shape == (N_TRAIN, 64)
    assert digits.x_test.shape == (389, 64)
    assert digits.x_train.dtype == np.float32
    assert digits.y_train.dtype == np.int64
    assert (digits.x_train.min(), digits.x_train.max()) == (0.0, 1.0)
    for labels in (digits.y_train, digits.y_test):
        assert set(labels) == set(range(N_CLASSES))
    from sklearn.datasets import load_digits as original

    x, y = original(return_X_y=True)
    ours = np.concatenate([digits.x_train, digits.x_test]), np.concatenate([digits.y_train, digits.y_test])
    assert sorted(zip(map(bytes, (x / 16).astype("float32")), y, strict=True)) == sorted(
        zip(map(bytes, ours[0]), ours[1], strict=True)
    )
    assert N_TRAIN % 64 == 0  # every global batch of the demo divides evenly


def test_the_order_of_the_digits_depends_on_the_seed_alone():
    assert np.array_equal(load_digits().x_train, load_digits(0).x_train)
    assert not np.array_equal(load_digits(0).y_train, load_digits(1).y_train)


@pytest.mark.parametrize("build", [digits_mlp, digits_convnet])
def test_models_start_from_the_same_weights_on_any_number_of_replicas(strategy_with, build):
    weights = []
    for n in (1, 3):
        with strategy_with(n).scope():
            weights.append(numbers(build(seed=1).variables))
    assert all(np.array_equal(a, b) for a, b in zip(*weights, strict=True))
    assert not np.array_equal(weights[0][0], numbers(build(seed=2).variables)[0])


def test_the_perceptron_is_as_large_as_it_says_and_its_penalty_is_on_kernels():
    assert digits_mlp().count_params() == 4810
    assert digits_mlp()(np.zeros((3, 64), "float32")).shape == (3, 10)
    assert len(digits_mlp(l2=0.1).losses) == 2
    assert digits_mlp().losses == []


def test_the_convolutional_network_takes_the_layers_that_surprise():
    model = digits_convnet(batch_norm=BatchNormalization(), dropout=ReplicaDropout(0.5))
    assert model(np.zeros((3, 64), "float32")).shape == (3, 10)
    kinds = [type(layer) for layer in model.layers]
    assert kinds.index(keras.layers.Conv2D) + 1 == kinds.index(BatchNormalization)
    assert kinds[-2] is ReplicaDropout


@pytest.mark.parametrize(
    ("examples", "n", "sizes"), [(0, 2, [0, 0]), (1, 3, [1, 0, 0]), (5, 4, [2, 2, 1, 0]), (8, 4, [2] * 4)]
)
def test_replica_batches_fill_up_in_order(examples, n, sizes):
    assert replica_batch_sizes(examples, n) == sizes
    pieces = split_on_replicas([np.arange(examples)], n)
    assert [len(piece[0]) for piece in pieces] == sizes
    assert np.concatenate([piece[0] for piece in pieces]).tolist() == list(range(examples))


def test_batches_that_cannot_be_are_refused():
    for wrong in ((-1, 2), (3, 0)):
        with pytest.raises(BadInput, match="cannot be"):
            replica_batch_sizes(*wrong)
    with pytest.raises(BadInput, match="different lengths"):
        split_on_replicas([np.arange(3), np.arange(4)], 2)
    with pytest.raises(BadInput, match="different lengths"):
        batched_dataset([np.arange(3), np.arange(4)], 2)
    with pytest.raises(BadInput, match="at least 1"):
        batched_dataset([np.arange(3)], 0)


def test_a_shuffled_dataset_comes_in_the_same_order_each_time(strategy_with):
    strategy_with(1)
    data = batched_dataset((np.arange(20), np.arange(20) * 2), 6, shuffle_seed=3)
    passes = [list(data.as_numpy_iterator()) for _ in range(2)]
    assert [len(x) for x, _ in passes[0]] == [6, 6, 6, 2]
    first, second = (np.concatenate([x for x, _ in one]) for one in passes)
    assert np.array_equal(first, second)
    assert sorted(first) == list(range(20))
    assert first.tolist() != list(range(20))
    assert all(np.array_equal(y, 2 * x) for x, y in passes[0])
