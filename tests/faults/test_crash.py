"""Workers that are killed, told to end, or leave early; damaged checkpoints: the weights are those of no fault.

"It resumed and the loss went down" would pass with the optimizer's slots lost, with batches done twice or not at all,
and with a worker that starts from its own copy. So weights and the examples seen are compared, with those of a run in
which nothing happened, on another number of workers.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tfdistedu.cluster import TaskFailed

EXAMPLES, GLOBAL_BATCH, EPOCHS = 44, 12, 2  # 3 full batches and one of 8; 12 divides by 1, 2 and 3 workers
STEPS = 4


def job(folder, log, every=1, wait_at=None, hurt=None, each_its_own=False):
    """Train a small network to the end, from where the folder stands; return its weights."""
    import keras
    import numpy as np

    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy, tf
    from tfdistedu.synchronous.resume import train_resumably

    task = os.environ["TFDISTEDU_TASK"]
    index = int(task.rpartition(":")[2])
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    strategy = multi_worker_strategy(timeout=5)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(EXAMPLES, 3)), rng.normal(size=(EXAMPLES, 2))
    x[:, 0] = np.arange(EXAMPLES)  # who it is; scaled below
    with strategy.scope():
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [keras.layers.Input((3,)), keras.layers.Rescaling([0.02, 1, 1]), keras.layers.Dense(2)]
        )
        optimizer = SGD(0.05, momentum=0.9, global_clipnorm=1.0)

    def examples_of(epoch):
        order = np.random.default_rng([7, epoch]).permutation(EXAMPLES)
        return tf.data.Dataset.from_tensor_slices((x[order], y[order]))

    def on_step(position, loss):
        Path(log, f"{index}-{position.epoch}-{position.step}").touch()
        if wait_at == (position.epoch, position.step) and hurt in (index, None):
            Path(log, f"here-{index}").write_text(str(os.getpid()), encoding="utf-8")
            while not Path(log, "go").exists():
                time.sleep(0.01)

    folder = f"{folder}/{index}" if each_its_own else folder
    step = make_train_step(strategy, model, optimizer, "mse")
    train_resumably(strategy, step, examples_of, GLOBAL_BATCH, EPOCHS, folder, model, optimizer, every, on_step)
    return np.concatenate([np.ravel(weight) for weight in [*model.get_weights(), *map(np.array, optimizer.variables)]])


def wait_for(path, seconds=40.0):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not come"
        time.sleep(0.01)


def steps_in(log):
    return sorted(path.name for path in log.iterdir() if path.name[0].isdigit())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Weights and slots after a run of two workers in which nothing happened."""
    from tfdistedu.cluster import LocalCluster

    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "log").mkdir()
    with LocalCluster(workers=2, deadline=60) as cluster:
        results = cluster.run(job, str(folder / "checkpoints"), str(folder / "log"))
    assert results["worker:0"].tobytes() == results["worker:1"].tobytes()
    assert len(steps_in(folder / "log")) == 2 * EPOCHS * STEPS
    return results["worker:0"]


def same(results, undisturbed):
    for value in results.values():
        # Float64 sums in the order of another number of workers, over 8 steps; a step more or less is 1e-3.
        np.testing.assert_allclose(value, undisturbed, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("at", "workers_after"), [((0, 2), 2), ((1, 1), 3)])
def test_a_worker_killed_in_mid_epoch_changes_no_weight(local_cluster, tmp_path, undisturbed, at, workers_after):
    log, checkpoints = tmp_path / "log", tmp_path / "checkpoints"
    log.mkdir()
    cluster = local_cluster(workers=2, deadline=60)
    call = cluster.start(job, str(checkpoints), str(log), 2, at, 1)
    wait_for(log / "here-1")
    cluster.kill("worker:1")
    began = time.monotonic()
    outcomes = call.outcomes(deadline=40)
    assert time.monotonic() - began < 12  # seconds, not the hours of a silent hang
    assert "ended by SIGKILL" in outcomes["worker:1"].error, outcomes
    address = cluster.addresses["worker"][1]
    assert f"worker:1 ({address}) is gone: nobody answers there" in outcomes["worker:0"].error, outcomes
    cluster.close()
    before = set(steps_in(log))
    again = local_cluster(workers=workers_after, deadline=60)
    same(again.run(job, str(checkpoints), str(log), 2), undisturbed)
    assert not list(checkpoints.glob("*.unfinished"))
    redone = {name for name in steps_in(log) if name.startswith("0-")}
    assert len(redone) == EPOCHS * STEPS  # each position was reached; none was left out
    assert before <= set(steps_in(log))


def test_a_worker_told_to_end_makes_all_save_at_one_step_and_no_step_is_done_twice(
    local_cluster, tmp_path, undisturbed
):
    log, checkpoints = tmp_path / "log", tmp_path / "checkpoints"
    log.mkdir()
    cluster = local_cluster(workers=2, deadline=60)
    call = cluster.start(job, str(checkpoints), str(log), 100, (1, 2))  # no checkpoint comes by itself before the end
    for index in range(2):
        wait_for(log / f"here-{index}")
    os.kill(int((log / "here-1").read_text(encoding="utf-8")), signal.SIGTERM)
    time.sleep(0.3)
    (log / "go").touch()
    outcomes = call.outcomes(deadline=40)
    for task in cluster.tasks:
        assert (
            "Preempted: worker:1 was told to end (SIGTERM). All saved after step 2 of epoch 1" in outcomes[task].error
        )
    cluster.close()
    first = steps_in(log)
    assert first[-1] == "1-1-2"
    second_log = tmp_path / "second"
    second_log.mkdir()
    again = local_cluster(workers=2, deadline=60)
    same(again.run(job, str(checkpoints), str(second_log)), undisturbed)
    assert not set(first) & set(steps_in(second_log))  # nothing twice
    assert len(first) + len(steps_in(second_log)) == 2 * EPOCHS * STEPS  # nothing left out


def save_alone(folder, who):
    import keras

    from tfdistedu.errors import TfdisteduError
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.synchronous.checkpoint import Position, restore, save
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy

    strategy = multi_worker_strategy(timeout=3)
    task = os.environ["TFDISTEDU_TASK"]
    with strategy.scope():
        model, optimizer = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)]), SGD(0.1)
    if who == "all":
        path = save(folder, strategy, model, optimizer, Position(3, 4))
        own = f"{folder}/{task}"
        try:
            restore(own, strategy, model, optimizer)
        except TfdisteduError as error:
            return str(path), restore(folder, strategy, model, optimizer), str(error)
    if who == task:
        try:
            save(folder, strategy, model, optimizer, Position())
        except TfdisteduError as error:
            return type(error).__name__, str(error)
    time.sleep(4)
    return None


def test_all_save_the_chief_writes_and_one_alone_is_told(local_cluster, tmp_path):
    """R34: all workers write one path and break it, or the chief saves alone and waits for ever."""
    cluster = local_cluster(workers=2, deadline=60)
    results = cluster.run(save_alone, str(tmp_path / "a"), "all")
    for path, position, _ in results.values():
        assert path == str(tmp_path / "a" / "checkpoint-000001.npz")
        assert position == (3, 4)
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["checkpoint-000001.npz"]  # one save, nothing beside
    assert all("no checkpoint in" in error for _, _, error in results.values())
    cluster.close()
    cluster = local_cluster(workers=2, deadline=60)
    kind, text = cluster.run(save_alone, str(tmp_path / "b"), "worker:0")["worker:0"]
    assert kind == "DeadlineExceeded"
    assert "not all of worker:0, worker:1 came" in text
    assert "All workers must call it, not only the chief" in text


def test_workers_that_do_not_see_one_folder_are_told_and_a_damaged_file_is_passed_over_by_all(
    local_cluster, tmp_path, undisturbed
):
    log, checkpoints = tmp_path / "log", tmp_path / "checkpoints"
    log.mkdir()
    cluster = local_cluster(workers=2, deadline=60)
    cluster.run(job, str(checkpoints), str(log))
    cluster.close()
    newest = sorted(checkpoints.iterdir())[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 0xFF
    newest.write_bytes(bytes(data))
    cluster = local_cluster(workers=2, deadline=60)
    same(cluster.run(job, str(checkpoints), str(log)), undisturbed)  # from the one before, one step back
    assert all("passed over damaged" in cluster.output(task) for task in cluster.tasks)
    cluster.close()
    own = tmp_path / "own"
    own.mkdir()
    checkpoints.rename(own / "0")  # worker 0 has a disk of its own, and worker 1 an empty one
    cluster = local_cluster(workers=2, deadline=60)
    with pytest.raises(TaskFailed) as caught:
        cluster.run(job, str(own), str(log), 1, None, None, True)
    for task in cluster.tasks:
        error = caught.value.outcomes[task].error
        assert "worker:0 finds number" in error, error
        assert "worker:1 finds none. Give all one shared folder" in error


def leaves(together):
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy
    from tfdistedu.synchronous.workers import is_chief, leave_together, task_names, tell_all

    strategy = multi_worker_strategy(timeout=8)
    told = tell_all(strategy, 10 + int(os.environ["TFDISTEDU_TASK"][-1]))
    names, chief = task_names(strategy), is_chief(strategy)
    if chief:
        time.sleep(2)  # evaluates, saves
    began = time.monotonic()
    if together:
        leave_together(strategy)
    return told, names, chief, time.monotonic() - began


def test_all_leave_together_after_what_only_the_chief_does(local_cluster):
    """R10: a worker that is gone while the chief still works looks like a crash to it."""
    results = local_cluster(workers=1, chief=True, deadline=60).run(leaves, True)
    assert {task: value[:3] for task, value in results.items()} == {
        "chief:0": ([10, 10], ["chief:0", "worker:0"], True),
        "worker:0": ([10, 10], ["chief:0", "worker:0"], False),
    }
    assert results["worker:0"][3] > 1.5  # it waited for the chief
    assert local_cluster(workers=2, deadline=60).run(leaves, True)["worker:1"][0] == [10, 11]
