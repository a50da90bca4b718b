"""Four steps in one go are two steps, a checkpoint, and two steps on another number of replicas."""

from __future__ import annotations

import errno
import warnings

import keras
import numpy as np
import pytest

from tests.equivalence.small import X, Y, assert_same, check_copies_equal, numbers
from tfdistedu.data.batches import batched_dataset
from tfdistedu.errors import BadInput, MachineCannot, TfdisteduError
from tfdistedu.step.batch_norm import BatchNormalization
from tfdistedu.step.dropout import ReplicaDropout
from tfdistedu.step.optimizer import SGD, Adam
from tfdistedu.step.precision import LossScale
from tfdistedu.step.replica import make_train_step
from tfdistedu.synchronous.checkpoint import Position, checkpoints, restore, save
from tfdistedu.synchronous.loop import distribute


def data():
    """An epoch of 8, 8 and 6 examples."""
    return batched_dataset((X[:22], Y[:22]), 8)


def network(width=4):
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            keras.layers.Input((3,)),
            keras.layers.Dense(width, use_bias=False),
            BatchNormalization(momentum=0.5),
            keras.layers.Dense(2),
            ReplicaDropout(0.0, seed=3),  # rate 0: the masks of another number of replicas would differ
        ]
    )


OPTIMIZERS = {
    "adam": lambda: Adam(0.05, global_clipnorm=0.5),
    "loss scale, momentum": lambda: LossScale(SGD(0.1, momentum=0.9)),
}


def make(strategy, optimizer=lambda: Adam(0.05, global_clipnorm=0.5), build=network):
    with strategy.scope():
        return build(), optimizer()


def train(strategy, model, optimizer, dataset, steps, graph=False):
    step = make_train_step(strategy, model, optimizer, "mse", graph=graph)
    for batch in distribute(strategy, dataset.take(steps)):
        step(batch)
    check_copies_equal(strategy, [*model.variables, *optimizer.variables])


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("before", "after"), [(3, 2), (1, 4), (2, 1)])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_save_and_resume_with_another_number_of_replicas_is_training_on(
    strategy_with, tmp_path, before, after, optimizer
):
    """The new model is spoilt first and the new slots are zero, so what was not restored would show."""
    one = strategy_with(1)
    expected = make(one, optimizer)
    train(one, *expected, data().repeat(2), steps=4)

    first = make(strategy_with(before), optimizer)
    train(strategy_with(before), *first, data(), steps=2)
    save(tmp_path, strategy_with(before), *first, Position(epoch=0, step=2))

    second = make(strategy_with(after), optimizer)
    for variable in second[0].variables:
        if "seed" not in variable.path:
            variable.assign(np.full(variable.shape, 7.0))
    position = restore(tmp_path, strategy_with(after), *second)
    assert position == (0, 2)
    check_copies_equal(strategy_with(after), [*second[0].variables, *second[1].variables])
    rest = position.rest_of(data()).concatenate(data())
    train(strategy_with(after), *second, rest, steps=2)

    for got, wanted in zip(second, expected, strict=True):
        assert_same(numbers(got.variables), numbers(wanted.variables))
    assert second[1].iterations.value.numpy() == 4


@pytest.mark.parametrize("n", [1, 3])
def test_dropout_goes_on_with_the_next_masks(strategy_with, tmp_path, n):
    strategy = strategy_with(n)

    def build():
        keras.utils.set_random_seed(0)
        return keras.Sequential([keras.layers.Input((3,)), ReplicaDropout(0.5, seed=3), keras.layers.Dense(2)])

    straight = make(strategy, build=build)
    train(strategy, *straight, data(), steps=3)
    first = make(strategy, build=build)
    train(strategy, *first, data(), steps=1)
    save(tmp_path, strategy, *first, Position(0, 1))
    resumed = make(strategy, build=build)
    train(strategy, *resumed, restore(tmp_path, strategy, *resumed).rest_of(data()), steps=2)
    assert all(
        np.array_equal(a, b) for a, b in zip(*(numbers(m.variables) for m, _ in (straight, resumed)), strict=True)
    )


@pytest.fixture
def saved(strategy_with, tmp_path):
    """Two checkpoints: all weights 1, then all weights 2."""
    strategy = strategy_with(2)
    model, optimizer = make(strategy)
    for value in (1, 2):
        for variable in model.variables:
            variable.assign(np.full(variable.shape, value))
        save(tmp_path, strategy, model, optimizer, Position(value, 0))
    return strategy, model, optimizer


def forget(model):
    for variable in model.variables:
        variable.assign(np.zeros(variable.shape))


def test_every_kind_of_damage_is_noticed_and_the_checkpoint_before_is_used(saved, tmp_path):
    """Bytes all over the file, not only a cut end: a wrong number deep in an array makes no reader stumble."""
    strategy, model, optimizer = saved
    newest = checkpoints(tmp_path)[-1]
    whole = newest.read_bytes()
    harmless = 0
    for place in np.linspace(0, len(whole) - 1, 150).astype(int):
        newest.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        forget(model)
        with warnings.catch_warnings(action="ignore"):
            position = restore(tmp_path, strategy, model, optimizer)
        values = {float(value) for array in numbers(model.trainable_variables) for value in array.ravel()}
        assert values == {float(position.epoch)}  # 1 or 2, never a mixture
        harmless += position.epoch == 2  # dates of the archive, which nobody reads
    assert harmless < 60
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        newest.write_bytes(whole[:cut])
        with pytest.warns(
            UserWarning, match=r"passed over damaged checkpoint-000002.npz .*loaded checkpoint-000001.npz"
        ):
            assert restore(tmp_path, strategy, model, optimizer) == (1, 0)


def test_when_all_are_damaged_nothing_is_loaded(saved, tmp_path):
    strategy, model, optimizer = saved
    for path in checkpoints(tmp_path):
        path.write_bytes(b"no archive")
    forget(model)
    with pytest.raises(
        TfdisteduError, match=r"every checkpoint .* is damaged: checkpoint-000002.npz.*checkpoint-000001.npz"
    ):
        restore(tmp_path, strategy, model, optimizer)
    assert not numbers(model.variables)[0].any()


def test_a_crash_while_writing_leaves_the_checkpoint_before(saved, tmp_path, monkeypatch):
    strategy, model, optimizer = saved

    def crash(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", crash)
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, strategy, model, optimizer, Position(3, 0))
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-000001.npz", "checkpoint-000002.npz"]
    assert restore(tmp_path, strategy, model, optimizer) == (2, 0)
    save(tmp_path, strategy, model, optimizer, Position(3, 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-000002.npz", "checkpoint-000003.npz"]


def test_what_does_not_fit_is_listed_and_nothing_is_loaded(saved, strategy_with, tmp_path):
    strategy, *_ = saved
    model, optimizer = make(strategy, optimizer=lambda: SGD(0.1))
    forget(model)
    with pytest.raises(BadInput, match=r"nothing was loaded.*In the file and not here: adam/.*momentum"):
        restore(tmp_path, strategy, model, optimizer)
    wider, optimizer = make(strategy, build=lambda: network(width=5))
    with pytest.raises(
        BadInput, match=r"Not in the file: .*sequential/dense/kernel float32\[3, 5\].*In the file and not"
    ):
        restore(tmp_path, strategy, wider, optimizer)
    assert not numbers(model.variables)[0].any()


def test_an_empty_or_missing_folder_and_another_strategy_are_refused(saved, strategy_with, tmp_path):
    strategy, model, optimizer = saved
    with pytest.raises(BadInput, match="no checkpoint in"):
        restore(tmp_path / "none", strategy, model, optimizer)
    with pytest.raises(BadInput, match="another strategy object"):
        save(tmp_path, strategy_with(3), model, optimizer, Position())
    with pytest.raises(BadInput, match="at least 1"):
        save(tmp_path, strategy, model, optimizer, Position(), keep=0)


def test_bfloat16_is_kept(strategy_with, tmp_path):
    one = strategy_with(1)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2, dtype="bfloat16")])
    optimizer = SGD(0.1)
    before = numbers(model.variables)
    save(tmp_path, one, model, optimizer, Position())
    forget(model)
    restore(tmp_path, one, model, optimizer)
    assert before[0].dtype.name == "bfloat16"
    assert all(np.array_equal(a, b) for a, b in zip(before, numbers(model.variables), strict=True))


def test_a_full_disk_leaves_the_checkpoints_before_and_no_half_file(saved, tmp_path, monkeypatch):
    strategy, model, optimizer = saved

    def full(file, **arrays):
        file.write(b"half a file")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("numpy.savez", full)
        with pytest.raises(MachineCannot, match=r"No space left on device\). The checkpoints .* untouched. Make room"):
            save(tmp_path, strategy, model, optimizer, Position(3, 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-000001.npz", "checkpoint-000002.npz"]
    (tmp_path / "file").touch()
    with pytest.raises(MachineCannot, match=r"cannot write a checkpoint in .*name another folder"):
        save(tmp_path / "file", strategy, model, optimizer, Position(3, 0))


def test_a_second_save_into_the_same_folder_at_the_same_time_is_refused(saved, tmp_path, monkeypatch):
    """Both would write into one file: the first renames it while the second is still writing."""
    strategy, model, optimizer = saved
    whole = np.savez

    def and_another(file, **arrays):
        with pytest.raises(BadInput, match="another save is writing into"):
            save(tmp_path, strategy, model, optimizer, Position(4, 0))
        whole(file, **arrays)

    with monkeypatch.context() as patch:
        patch.setattr("numpy.savez", and_another)
        save(tmp_path, strategy, model, optimizer, Position(3, 0))
    assert restore(tmp_path, strategy, model, optimizer) == (3, 0)
    save(tmp_path, strategy, model, optimizer, Position(5, 0))
    assert restore(tmp_path, strategy, model, optimizer) == (5, 0)


def test_where_a_folder_cannot_be_locked_saving_goes_on(saved, tmp_path, monkeypatch):
    """NFS takes no exclusive lock on what is open for reading."""
    strategy, model, optimizer = saved

    def refuse(*_):
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr("fcntl.flock", refuse)
    save(tmp_path, strategy, model, optimizer, Position(3, 0))
    assert restore(tmp_path, strategy, model, optimizer) == (3, 0)
