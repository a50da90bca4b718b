"""What a fault does to a training that keeps step: the others fail in bounded time, and say why."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tfdistedu.cluster import TaskFailed
from tfdistedu.cluster.forks import kept_server
from tfdistedu.errors import BadInput, TfdisteduError


def train(timeout, steps):
    """Reduce again and again; say in a file that it has begun."""
    import tensorflow as tf

    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=timeout)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    step = tf.function(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0)))
    total = 0.0
    for number in range(steps):
        total += float(strategy.run(step))
        if number == 3:
            print("has begun", flush=True)
        time.sleep(0.01)
    return total


def wait_until_begun(cluster, task):
    end = time.monotonic() + 20
    while "has begun" not in cluster.output(task):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_when_a_worker_is_killed_the_others_fail_in_bounded_time_and_a_restart_works(local_cluster):
    cluster = local_cluster(workers=2)
    running = cluster.start(train, 2.0, 1000)
    wait_until_begun(cluster, "worker:0")
    start = time.monotonic()
    cluster.kill("worker:1")
    outcomes = running.outcomes(deadline=20)
    # A reduction under way fails at once, one that begins later after its timeout; without that, after the 10 s in
    # which TensorFlow hears no heartbeat.
    assert time.monotonic() - start < 6
    assert outcomes["worker:1"].error == "ended by SIGKILL before it answered"
    assert outcomes["worker:0"].error.startswith(("UnavailableError", "DeadlineExceededError"))
    assert "in train" in outcomes["worker:0"].traceback
    with pytest.raises(TfdisteduError, match="worker:1 ended by SIGKILL"):
        cluster.pause("worker:1")
    before = cluster.addresses
    cluster.restart()
    assert cluster.addresses == before
    assert cluster.run(train, 30.0, 2) == {"worker:0": 4.0, "worker:1": 4.0}


def test_when_a_worker_holds_still_the_timeout_of_the_collective_ends_the_others(local_cluster):
    cluster = local_cluster(workers=2)
    running = cluster.start(train, 1.0, 1000)
    wait_until_begun(cluster, "worker:0")
    cluster.pause("worker:1")
    with pytest.raises(TaskFailed, match=r"on worker:0 \(DeadlineExceededError.*; worker:1 did not end"):
        running.results(deadline=20)


def share_of_time_stopped(pid):
    states = []
    for _ in range(150):
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            states.append(file.read().rsplit(")")[1].split()[0])
        time.sleep(0.004)
    return states.count("T") / len(states)


def test_a_slowed_task_is_stopped_for_its_share_of_the_time_and_can_be_made_quick_again(local_cluster):
    cluster = local_cluster(workers=1)
    cluster.slow("worker:0", 5)
    # What it computes meanwhile depends on what else the machine does; for how long it is stopped does not: 4/5.
    assert share_of_time_stopped(cluster._process("worker:0").pid) == pytest.approx(0.8, abs=0.2)
    assert cluster.run(lambda: "slowly, but it answers") == {"worker:0": "slowly, but it answers"}
    cluster.slow("worker:0", 1)
    assert share_of_time_stopped(cluster._process("worker:0").pid) == 0
    for factor in (0.5, 0, 101, float("nan")):
        with pytest.raises(BadInput, match="the factor says"):
            cluster.slow("worker:0", factor)
    cluster.slow("worker:0", 3)
    cluster.pause("worker:0")  # ends the slowness, which would wake it
    time.sleep(0.1)
    assert share_of_time_stopped(cluster._process("worker:0").pid) == 1
    with pytest.raises(BadInput, match="resume it first"):
        cluster.slow("worker:0", 2)


def test_when_the_server_is_killed_its_tasks_are_gone_and_the_next_cluster_has_a_new_one(local_cluster):
    cluster = local_cluster(workers=2)
    running = cluster.start(time.sleep, 60)
    old = kept_server(dict(os.environ)).pid
    os.kill(old, signal.SIGKILL)
    outcomes = running.outcomes(deadline=10)
    assert {outcome.error for outcome in outcomes.values()} == {
        "ended together with the server of the cluster before it answered"
    }
    cluster.close()
    again = local_cluster(workers=1)
    assert again.run(os.getppid)["worker:0"] != old
