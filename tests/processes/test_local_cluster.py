"""Real processes as a context manager: functions travel, results and errors come back under names, output is kept.

What is left after faults is counted in tests/faults.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from tfdistedu.cluster import LocalCluster, TaskFailed
from tfdistedu.cluster.calls import GRACE
from tfdistedu.cluster.forks import kept_server
from tfdistedu.cluster.ports import reserve_port
from tfdistedu.cluster.task import this_task
from tfdistedu.errors import BadInput, DeadlineExceeded

FACTOR = 3


@dataclass
class Point:
    x: int


def added(one, other):
    return Point(one.x + other.x)


def helper(value):
    return FACTOR * value.x


def who_and_where():
    import json

    return {
        "config": json.loads(os.environ["TF_CONFIG"]),
        "pid": os.getpid(),
        "folder": os.environ["TMPDIR"],
        "cwd": os.getcwd(),
        "variable": os.environ.get("TFDISTEDU_TEST"),
        "removed": os.environ.get("HOME"),
        "this_task": this_task(),
        "awake": "imported" if "tensorflow" in sys.modules else "not imported",
        "threads": threading.active_count(),
        "random": float(np.random.rand()),
    }


def test_each_task_is_a_process_with_its_own_config_folder_and_environment(local_cluster, monkeypatch, tmp_path):
    kept_server(dict(os.environ))  # so that what is set below is set after the server's start
    monkeypatch.setenv("TFDISTEDU_TEST", "set after the server's start")
    monkeypatch.chdir(tmp_path)
    cluster = local_cluster(workers=2, chief=True, evaluator=True, env={"HOME": None})
    assert cluster.tasks == ["chief:0", "worker:0", "worker:1", "evaluator:0"]
    seen = cluster.run(who_and_where)
    assert list(seen) == cluster.tasks
    for name, task in seen.items():
        job, index = name.split(":")
        assert task["config"]["task"] == {"type": job, "index": int(index)}
        # An evaluator is no member: a coordinator would wait for a server that it never starts.
        assert task["config"]["cluster"] == cluster.addresses
        assert task["this_task"] == name
        assert task["variable"] == "set after the server's start"
        assert (task["removed"], task["cwd"]) == (None, str(tmp_path))
        assert (task["awake"], task["threads"]) == ("imported", 1)
    assert {job: len(addresses) for job, addresses in cluster.addresses.items()} == {"chief": 1, "worker": 2}
    for different in ("pid", "folder", "random"):  # forks share a random state unless somebody cares
        assert len({task[different] for task in seen.values()}) == 4
    assert this_task() is None
    assert all(os.path.isdir(task["folder"]) for task in seen.values())
    cluster.close()
    assert not any(os.path.exists(task["folder"]) for task in seen.values())


def test_functions_of_a_test_closures_and_their_helpers_travel_by_value(local_cluster):
    cluster = local_cluster(workers=1)
    here = 10

    def closure(point, more=0):
        return helper(point) + here + more, "pytest" in sys.modules

    # The task could import this module only with pytest and all that stands at its top: it must not.
    assert cluster.run(closure, Point(2), more=1) == {"worker:0": (17, False)}
    assert cluster.run(lambda name: name in sys.modules, "tests.processes.test_local_cluster") == {"worker:0": True}
    assert cluster.run(eval, "'tests.processes.test_local_cluster' in __import__('sys').modules") == {"worker:0": False}
    assert cluster.run(functools.partial(closure, Point(2), more=2)) == {"worker:0": (18, False)}
    assert cluster.run(Point(3).__eq__, Point(3)) == {"worker:0": True}
    # Also what an installed function is given.
    assert cluster.run(functools.reduce, added, [Point(1), Point(2)]) == {"worker:0": Point(3)}
    assert cluster.run(lambda: Point(4)) == {"worker:0": Point(4)}
    assert cluster.run(os.getcwd) == {"worker:0": os.getcwd()}


def test_what_lives_in_one_process_is_refused_with_its_name(local_cluster, strategy_with):
    import keras
    import tensorflow as tf

    cluster = local_cluster(workers=1)
    variable = tf.Variable(1.0, name="weights")
    for captured, name in (
        (variable, "weights"),
        (strategy_with(2), "MirroredStrategy"),
        (keras.layers.Dense(1), "Dense"),
        (keras.optimizers.SGD(), "SGD"),
        ({"deep": [variable]}, "weights"),
    ):
        # Pickled, a variable would arrive as a copy, and training it would change nothing here.
        with pytest.raises(BadInput, match=rf"cannot send .*{name}.*Make it inside the function"):
            cluster.run(lambda captured=captured: captured)
    with pytest.raises(BadInput, match="cannot be pickled"):
        cluster.run(threading.Lock().acquire)
    with pytest.raises(BadInput, match="a function is run"):
        cluster.run(3)
    assert cluster.run(lambda: "still works") == {"worker:0": "still works"}


def test_tensors_arrive_as_arrays_and_what_cannot_be_returned_is_named(local_cluster):
    cluster = local_cluster(workers=1)

    def tensors():
        import tensorflow as tf

        return {"a": tf.constant([1.0, 2.0]), "b": (tf.constant(3),)}

    (result,) = cluster.run(tensors).values()
    assert type(result["a"]) is np.ndarray
    assert result["a"].tolist() == [1.0, 2.0]
    assert int(result["b"][0]) == 3

    def variable():
        import tensorflow as tf

        return tf.Variable(1.0, name="mine")

    with pytest.raises(TaskFailed, match=r"a task cannot return .*'mine:0'.*Return numbers"):
        cluster.run(variable)
    with pytest.raises(TaskFailed, match="a task cannot return something that cannot be pickled"):
        cluster.run(threading.Lock)


def fails_on_one(task):
    if os.environ["TFDISTEDU_TASK"] == task:
        raise ValueError("what went wrong\nand more of it")
    return "fine"


def test_a_failed_tasks_traceback_arrives_under_its_name(local_cluster):
    cluster = local_cluster(workers=3)
    with pytest.raises(TaskFailed) as caught:
        cluster.run(fails_on_one, "worker:1")
    text = str(caught.value)
    assert text.startswith("fails_on_one failed on worker:1 (ValueError: what went wrong)\n\nworker:1:\nTraceback")
    assert 'raise ValueError("what went wrong\\nand more of it")' in text  # the line of this file
    assert "tfdistedu/cluster" not in text  # how it came there does not matter
    assert "worker:0" not in text
    assert caught.value.outcomes["worker:0"].value == "fine"
    assert cluster.run(lambda: 1) == {"worker:0": 1, "worker:1": 1, "worker:2": 1}


def test_the_first_failure_ends_the_wait_for_tasks_that_hang(local_cluster):
    cluster = local_cluster(workers=2)

    def hangs_on_one():
        if os.environ["TFDISTEDU_TASK"] == "worker:1":
            sys.exit(3)
        time.sleep(30)

    start = time.monotonic()
    with pytest.raises(TaskFailed, match=r"on worker:1 \(SystemExit: 3\); worker:0 did not end within some seconds"):
        cluster.run(hangs_on_one)
    assert time.monotonic() - start < GRACE + 5
    with pytest.raises(BadInput, match="worker:0 is still busy with hangs_on_one"):
        cluster.run(lambda: 1)
    assert cluster.run(lambda: 1, on="worker:1") == {"worker:1": 1}
    cluster.restart("worker:0")
    assert cluster.run(lambda: 2) == {"worker:0": 2, "worker:1": 2}


def test_a_task_that_ends_is_named_with_its_end(local_cluster):
    cluster = local_cluster(workers=2)
    outcomes = cluster.start(lambda: os._exit(7) if os.environ["TFDISTEDU_TASK"] == "worker:0" else 5).outcomes()
    assert outcomes["worker:0"].error == "ended with status 7 before it answered"
    assert outcomes["worker:1"].value == 5
    with pytest.raises(Exception, match=r"worker:0 ended with status 7; restart\('worker:0'\) starts it again"):
        cluster.run(lambda: 1)


def test_output_of_python_and_of_programs_is_shown_and_kept_under_the_tasks_name(local_cluster, capfd):
    cluster = local_cluster(workers=2)

    def prints():
        task = os.environ["TFDISTEDU_TASK"]
        print(f"from {task}")
        os.system("echo a program")
        print("an error", file=sys.stderr)
        print("10 %\r20 %\r30 %")
        os.write(1, b"no end \xff of line")

    cluster.run(prints)
    kept = cluster.output("worker:1")
    assert "from worker:1\n" in kept
    assert "10 %\r20 %\r30 %\n" in kept  # and nothing of the other pipe within a line
    assert "no end \N{REPLACEMENT CHARACTER} of line" in kept
    assert "worker:0" not in kept
    cluster.close()
    shown = capfd.readouterr()
    for task in cluster.tasks:
        for line in (f"from {task}", "a program", "30 %", "no end \N{REPLACEMENT CHARACTER} of line"):
            assert shown.out.count(f"[{task}] {line}\n") == 1, shown.out
        assert f"[{task}] an error\n" in shown.err
    assert "20 %" not in shown.out


def one_more_reduction(task):
    """Call a collective on one worker only: it waits for the others for ever."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    reduce = tf.function(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0)))
    total = float(strategy.run(reduce))
    if os.environ["TFDISTEDU_TASK"] == task:
        strategy.run(reduce)  # the line to find
    return total


def test_a_hang_is_shown_with_the_stack_of_the_task_that_hangs(local_cluster):
    cluster = local_cluster(workers=2)
    with pytest.raises(DeadlineExceeded) as caught:
        cluster.run(one_more_reduction, "worker:1", deadline=4)
    text = str(caught.value)
    assert text.startswith("one_more_reduction: no answer within 4 s from worker:1. Where they stand")
    found = re.search(r'test_local_cluster.py", line (\d+) in one_more_reduction', text)
    with open(__file__, encoding="utf-8") as file:
        assert "# the line to find" in file.read().splitlines()[int(found[1]) - 1]
    assert "site-packages/tensorflow" in text.splitlines()[3]  # the innermost call is TensorFlow's
    assert text.count("site-packages/tensorflow") == 1
    assert "worker:0" not in text
    assert "AutoGraph" not in cluster.output("worker:0")  # it reads the source of what was sent
    assert "most recent call first" in cluster.output("worker:1")
    assert "most recent call first" not in cluster.output("worker:0")


def test_a_paused_task_is_named_as_such_and_goes_on_when_resumed(local_cluster):
    cluster = local_cluster(workers=2)
    cluster.pause("worker:0")
    running = cluster.start(lambda: "went on")
    with pytest.raises(DeadlineExceeded, match=r"from worker:0\.[^$]*worker:0:\n  \(paused\)"):
        running.results(deadline=0.3)
    cluster.resume("worker:0")
    assert running.results() == {"worker:0": "went on", "worker:1": "went on"}


def test_what_a_call_leaves_the_next_one_finds(local_cluster):
    cluster = local_cluster(workers=1)
    cluster.run(lambda: setattr(sys, "left_by_a_call", 1))
    assert cluster.run(lambda: sys.left_by_a_call) == {"worker:0": 1}
    cluster.restart()
    assert cluster.run(lambda: hasattr(sys, "left_by_a_call")) == {"worker:0": False}


def test_the_server_stays_for_the_next_cluster_and_one_with_other_imports_does_not_serve(local_cluster):
    parents = [local_cluster(workers=1).run(os.getppid)["worker:0"] for _ in range(2)]
    assert parents[0] == parents[1]
    assert kept_server(dict(os.environ)).pid == parents[0]
    # A launcher that imports TensorFlow after its first cluster has these set by the import, and keeps its server.
    without = {
        name: value for name, value in os.environ.items() if name not in ("KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL")
    }
    for environment in (without, {**without, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2"}):
        assert kept_server(environment).pid == parents[0]
    # Read while TensorFlow is imported: in a fork it would come too late.
    assert kept_server({**os.environ, "TF_USE_LEGACY_KERAS": "1"}) is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"workers": 0}, "at least one worker"),
        ({"workers": 0, "ps": 1, "chief": True}, "at least one worker"),
        ({"workers": -1}, "workers=-1"),
        ({"workers": 2.0}, "workers=2.0"),
        ({"ps": True}, "ps=True"),
    ],
)
def test_numbers_that_make_no_cluster_are_refused(arguments, complaint):
    with pytest.raises(BadInput, match=re.escape(complaint)):
        LocalCluster(**arguments)


def test_wrong_names_are_refused_with_the_right_ones(local_cluster):
    with pytest.raises(BadInput, match="was not started"):
        LocalCluster(1).run(lambda: 1)
    cluster = local_cluster(workers=1)
    for call in (
        lambda: cluster.run(lambda: 1, on="worker:1"),
        lambda: cluster.kill("ps:0"),
        lambda: cluster.output("worker"),
        lambda: cluster.tf_config_of("nobody:3"),
    ):
        with pytest.raises(BadInput, match=r"there is no task .* it has worker:0\."):
            call()
    with pytest.raises(BadInput, match="no member of the cluster"):
        cluster.resolver()
    with pytest.raises(BadInput, match="used already"):
        cluster.__enter__()


def test_reserved_ports_are_all_different_and_nobody_listens_on_them():
    import socket

    ports = {reserve_port() for _ in range(200)}
    assert len(ports) == 200
    for port in list(ports)[:5]:
        with socket.socket() as caller, pytest.raises(ConnectionRefusedError):
            caller.connect(("127.0.0.1", port))
    # The system gives none of them to who asks for any port: that is what a plain bind(0) and close cannot promise.
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2000)]
    assert not ports & {server.getsockname()[1] for server in held}
    for server in held:
        server.close()


def coordinate():
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        variable = tf.Variable(0.0)
    add = tf.function(lambda: variable.assign_add(1.0))
    for _ in range(10):
        coordinator.schedule(add)
    coordinator.join()
    return float(variable.numpy()), variable.device


def test_a_chief_coordinates_workers_and_parameter_servers_that_serve(local_cluster):
    cluster = local_cluster(workers=2, ps=1, chief=True)
    assert cluster.run(coordinate) == {"chief:0": (10.0, "/job:ps/replica:0/task:0/device:CPU:0")}
    assert cluster.run(os.getpid, on="ps")["ps:0"] > 0  # beside its serving


IN_THIS_PROCESS = """
import os, signal, sys, time
from tfdistedu.cluster import LocalCluster
from tfdistedu.errors import BadInput
import tensorflow as tf
from tfdistedu.cluster import LocalCluster
with LocalCluster(workers=1, ps=1, start_deadline=100) as cluster:
    try:
        cluster.run(os.getpid)
    except BadInput as error:
        print(error)
    print(sorted(cluster.tf_config["cluster"]), cluster.tf_config["task"])
    strategy = tf.distribute.ParameterServerStrategy(cluster.resolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        variable = tf.Variable(0.0)
    for _ in range(5):
        coordinator.schedule(tf.function(lambda: variable.assign_add(1.0)))
    coordinator.join()
    print("counted", float(variable.numpy()), variable.device, flush=True)
os._exit(0)  # TensorFlow's coordinator would go on asking its workers
"""


def test_without_a_chief_this_process_coordinates(fresh_processes):
    done = fresh_processes.run(IN_THIS_PROCESS)
    assert done.status == 0, done.stderr
    assert "all tasks of this cluster serve, and this process coordinates" in done.stdout
    assert "['chief', 'ps', 'worker'] {'type': 'chief', 'index': 0}" in done.stdout
    assert "counted 5.0 /job:ps/replica:0/task:0/device:CPU:0" in done.stdout


def test_the_launcher_imports_no_tensorflow():
    code = "import sys, tfdistedu.cluster.local, tfdistedu.cluster.launch; print('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
