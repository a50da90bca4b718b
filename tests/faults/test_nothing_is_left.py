"""However a cluster ends, nothing of it is left: counted from outside, by a mark that its processes inherit."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.faults.kill_demo import kill_demo
from tests.faults.rounds import Launcher, eventually_empty, listening, marked, rounds

# The processes are the same with a TensorFlow that is empty, and start in a tenth of the time.
EMPTY_TENSORFLOW = {
    "keras/__init__.py": "",
    "tensorflow/__init__.py": "class config:\n    list_physical_devices = staticmethod(lambda kind: [])\n",
    "tensorflow/python/__init__.py": "",
    "tensorflow/python/eager/__init__.py": "",
    "tensorflow/python/eager/context.py": (
        "class Context:\n    def ensure_initialized(self):\n        pass\n_context = Context()\n"
    ),
}

STARTS = """
import os, signal, subprocess, sys, time
from tfdistedu.cluster import LocalCluster

def work():
    subprocess.Popen(["sleep", "60"])  # what a task starts goes with it
    open(os.path.join(os.environ["TMPDIR"], "left"), "w").close()
    if os.environ["TFDISTEDU_TASK"] == "worker:1":
        os.kill(os.getpid(), signal.SIGSTOP)  # no end-of-file and no signal but SIGKILL reaches this one
    time.sleep(60)

with LocalCluster(2, fork={fork}, deadline=60, start_deadline=60) as cluster:
    import json
    running = cluster.start(work)
    while "left" not in str([os.listdir(p.folder) for p in cluster._processes.values()]):
        time.sleep(0.01)
    time.sleep(0.1)
    print(json.dumps({{"ports": [int(a.split(":")[1]) for a in cluster.addresses["worker"]]}}), flush=True)
    {then}
    running.results()
"""


@pytest.fixture
def launcher_of(tmp_path):
    for name, text in EMPTY_TENSORFLOW.items():
        file = tmp_path / "empty" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / "temporary").mkdir()
    return lambda code: Launcher(str(tmp_path / "temporary"), code=code, path=str(tmp_path / "empty"))


def test_twenty_rounds_a_third_of_them_broken_leave_nothing(tmp_path):
    counts = rounds(20, seed=1, folder=str(tmp_path))
    assert counts == {"ends": 13, "task": 3, "server": 2, "launcher": 2}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ctrl_c_and_other_ends_of_the_launcher_take_all_with_it(launcher_of, number):
    launcher = launcher_of(STARTS.format(fork=None, then="pass"))
    launcher.answer()
    assert len(launcher.left()["processes"]) == 6  # launcher, server, two tasks, one program each
    assert launcher.left()["files"]
    launcher.process.send_signal(number)
    status = launcher.process.wait(20)
    assert status == -number  # Python ends a Ctrl-C that nobody caught by the signal itself
    launcher.close()
    eventually_empty(launcher)


def test_an_exception_in_the_context_takes_all_with_it(launcher_of):
    launcher = launcher_of(STARTS.format(fork=None, then="raise ValueError"))
    launcher.answer()
    assert launcher.process.wait(20) == 1
    launcher.close()
    eventually_empty(launcher)


def test_without_a_fork_an_end_and_a_kill_leave_nothing_either(launcher_of):
    """The way of other systems, forced. A *stopped* task is the one thing that outlives a killed launcher there."""
    code = STARTS.replace("os.kill(os.getpid(), signal.SIGSTOP)", "pass")
    killed = launcher_of(code.format(fork=False, then="pass"))
    killed.answer()
    processes = killed.left()["processes"]
    assert not any("tfdistedu.cluster.server" in name for name in processes.values())
    assert sum("tfdistedu.cluster.task" in name for name in processes.values()) == 2
    killed.process.kill()
    killed.process.wait()
    killed.close()
    end = time.monotonic() + 5
    while any("sleep" not in name for name in marked(killed.mark).values()) and time.monotonic() < end:
        time.sleep(0.05)
    assert all("sleep" in name for name in marked(killed.mark).values())
    left = killed.left()
    left.pop("processes", None)
    assert not left
    assert not killed.ports & listening()
    for pid in marked(killed.mark):  # what a task started: a launcher that lives ends it, and so does a server
        os.kill(pid, signal.SIGKILL)


def test_without_a_fork_the_end_of_the_context_takes_all_with_it(launcher_of):
    launcher = launcher_of(STARTS.format(fork=False, then="raise ValueError"))
    launcher.answer()
    assert launcher.process.wait(20) == 1
    launcher.close()
    eventually_empty(launcher)


def test_a_killed_demo_leaves_nothing(tmp_path):
    """Early, and while it trains: processes, ports, segments, and the files that AutoGraph writes in its process."""
    kill_demo(2, seed=3, folder=str(tmp_path))


def test_a_killed_table_of_what_works_leaves_no_folder(tmp_path):
    code = "import sys; sys.argv = ['tfdistedu', 'bench', 'matrix']; from tfdistedu.cli import main; main()"
    launcher = Launcher(str(tmp_path), code=code)
    end = time.monotonic() + 60
    while len(launcher.left().get("files", ())) < 2 and time.monotonic() < end:  # its folder, and that of a cell
        time.sleep(0.05)
    assert len(launcher.left()["files"]) >= 2
    launcher.process.kill()
    launcher.process.wait(20)
    launcher.close()
    eventually_empty(launcher, 10.0)
