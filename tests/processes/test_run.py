"""`tfdistedu run`: a script as a cluster, by the command as one types it. Most scripts need no real TensorFlow."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.faults.rounds import MARK, marked
from tests.faults.test_nothing_is_left import EMPTY_TENSORFLOW
from tests.fresh_process import ROOT

SCRIPT = """
import json, os, sys, time
task = os.environ["TFDISTEDU_TASK"]
{body}
"""


@pytest.fixture
def run(tmp_path):
    """Call the command in an empty folder; a body becomes `train.py`."""
    for name, text in EMPTY_TENSORFLOW.items():
        file = tmp_path / "empty" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for folder in ("work", "temporary"):
        (tmp_path / folder).mkdir()

    def call(*words, body=None, real=False, wait=True, **variables):
        if body is not None:
            (tmp_path / "work" / "train.py").write_text(SCRIPT.format(body=body), encoding="utf-8")
        paths = [str(ROOT)] if real else [str(tmp_path / "empty"), str(ROOT)]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "TMPDIR": str(tmp_path / "temporary"),
            MARK: tmp_path.name,
            **variables,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "tfdistedu", "run", *words],
            cwd=tmp_path / "work",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if not wait:
            return process
        out, err = process.communicate(timeout=60)
        end = time.monotonic() + 5
        while marked(tmp_path.name) and time.monotonic() < end:
            time.sleep(0.05)
        assert marked(tmp_path.name) == {}
        assert list((tmp_path / "temporary").iterdir()) == []
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    return call


REAL = """
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=20.0)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

@tf.function
def step(x):
    if x > 0:
        x = 2 * x
    return tf.distribute.get_replica_context().all_reduce("SUM", x)

print("sum", float(strategy.run(step, args=(tf.constant(1.0),))), sys.argv[1:], __name__, os.path.basename(__file__))
print("legacy" if "tf_keras" in sys.modules or tf.keras.__version__.startswith("2") else "keras 3")
"""


def test_each_task_runs_the_whole_script_with_its_arguments(run):
    done = run("--workers", "2", "train.py", "--workers", "9", "-h", body=REAL, real=True)
    assert done.returncode == 0, done.stderr
    for task in ("worker:0", "worker:1"):
        assert f"[{task}] sum 4.0 ['--workers', '9', '-h'] __main__ train.py\n" in done.stdout
        assert f"[{task}] keras 3" in done.stdout


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ("if task == 'worker:1': sys.exit(7)\ntime.sleep(30)", 7, "worker:1 ended with status 7"),
        ("if task == 'worker:1': sys.exit('a reason')\ntime.sleep(30)", 1, "[worker:1] a reason"),
        ("if task == 'worker:0': 1 / 0\ntime.sleep(30)", 1, "[worker:0] ZeroDivisionError: division by zero"),
        ("if task == 'worker:0': os.kill(os.getpid(), 9)\ntime.sleep(30)", 137, "worker:0 ended by SIGKILL"),
        ("if task == 'worker:0': sys.exit(4)\ntime.sleep(0.5)\nsys.exit(5)", 4, "worker:1 ended with status 5"),
        ("sys.exit(0)", 0, ""),
    ],
    ids=["status", "reason", "exception", "signal", "the first", "all well"],
)
def test_the_first_failure_ends_the_rest_and_its_status_is_the_commands(run, body, status, told):
    start = time.monotonic()
    done = run("-n", "2", "train.py", body=body)
    assert done.returncode == status, done.stderr
    assert told in done.stderr
    assert time.monotonic() - start < 20


def test_with_restarts_the_whole_job_starts_again(run, tmp_path):
    body = (
        "again = os.path.exists('half')\nprint('again' if again else 'first', flush=True)\n"
        "if task == 'worker:1' and not again:\n    time.sleep(0.5)\n    open('half', 'w').close()\n    sys.exit(3)\n"
    )
    done = run("-n", "2", "--restarts", "2", "train.py", body=body)
    assert done.returncode == 0, done.stderr
    # Also the one that did not fail: it had ended well, and takes part again all the same.
    assert done.stdout.count("[worker:0] again") == done.stdout.count("[worker:1] again") == 1
    assert "the job starts again (1 of 2)" in done.stderr
    assert "(2 of 2)" not in done.stderr
    done = run("-n", "1", "--restarts", "1", "train.py", body="print('tried'); sys.exit(6)")
    assert (done.returncode, done.stdout.count("tried")) == (6, 2)


def test_with_ps_a_chief_is_added_and_its_end_ends_all(run):
    body = "print(task, flush=True)\nif task != 'chief:0': time.sleep(60)\ntime.sleep(0.3)\n{}"
    done = run("-n", "1", "--ps", "1", "--evaluator", "train.py", body=body.format(""))
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"\[(.*?)\]", done.stdout)) == ["chief:0", "evaluator:0", "ps:0", "worker:0"]
    assert "the chief has ended" in done.stderr
    assert run("-n", "1", "--ps", "1", "train.py", body=body.format("sys.exit(9)")).returncode == 9


def test_an_evaluator_that_waits_for_ever_is_ended_with_the_training(run):
    done = run("-n", "1", "--evaluator", "train.py", body="if task == 'evaluator:0': time.sleep(60)")
    assert done.returncode == 0
    assert "ended with it: evaluator:0" in done.stderr


def test_the_deadline_shows_stacks_and_names_who_still_ran(run):
    body = "def waits():\n    time.sleep(60)\n\nif task == 'worker:1': waits()"
    done = run("-n", "2", "--deadline", "3", "train.py", body=body)
    assert done.returncode == 124
    assert "tfdistedu: run train.py: the deadline has passed, and worker:1 still ran" in done.stderr
    assert re.search(r'\[worker:1\] +File "train.py", line \d+ in waits', done.stderr), done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_end_of_the_command_ends_the_tasks(run, tmp_path, number, status):
    process = run("-n", "2", "train.py", body="print('runs', flush=True)\ntime.sleep(60)", wait=False)
    lines = [process.stdout.readline() for _ in range(2)]
    assert all("runs" in line for line in lines)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == status
    end = time.monotonic() + 5
    while (marked(tmp_path.name) or list((tmp_path / "temporary").iterdir())) and time.monotonic() < end:
        time.sleep(0.05)
    assert marked(tmp_path.name) == {}
    assert list((tmp_path / "temporary").iterdir()) == []


def configs(text):
    found = {}
    for line in text.splitlines():
        task, _, assignment = line.partition("  ")
        shown = subprocess.run(["sh", "-c", f'{assignment}; printf %s "$TF_CONFIG"'], capture_output=True, text=True)
        found[task] = json.loads(shown.stdout)
    return found


def test_print_config_shows_what_a_shell_can_take(run):
    found = configs(run("-n", "2", "--ps", "1", "--evaluator", "--print-config").stdout)
    assert list(found) == ["chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0"]
    assert {job: len(addresses) for job, addresses in found["ps:0"]["cluster"].items()} == {
        "chief": 1, "worker": 2, "ps": 1,
    }  # fmt: skip
    assert found["worker:1"]["task"] == {"type": "worker", "index": 1}
    found = configs(run("--hosts", "a, b:3,::1,[::2]:7", "--print-config").stdout)
    assert found["worker:2"] == {
        "cluster": {"worker": ["a:2222", "b:3", "[::1]:2222", "[::2]:7"]},
        "task": {"type": "worker", "index": 2},
    }
    assert list(configs(run("--hosts", "a,b", "--index", "1", "--print-config").stdout)) == ["worker:1"]


def test_on_a_real_machine_the_script_runs_with_its_config_and_its_own_status(run):
    body = "print(os.environ['TF_CONFIG'], sys.argv[1:]); sys.exit(5)"
    done = run("--hosts", "a,b", "--index", "1", "--port", "7", "train.py", "x", body=body, TFDISTEDU_TASK="")
    assert done.returncode == 5
    config = '{"cluster": {"worker": ["a:7", "b:7"]}, "task": {"type": "worker", "index": 1}}'
    assert done.stdout == f"{config} ['x']\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "name the script"),
        (["nothing.py"], "there is no file nothing.py"),
        (["-n", "0", "train.py"], "at least one worker"),
        (["--deadline", "0", "train.py"], "--deadline"),
        (["--restarts", "-1", "train.py"], "--restarts"),
        (["--index", "0", "train.py"], "--index goes with --hosts"),
        (["--hosts", "a,b", "train.py"], "needs --index"),
        (["--hosts", "a,b", "--index", "2", "train.py"], "0 to 1"),
        (["--hosts", "a,b", "--workers", "2", "train.py"], "this machine's worker only"),
        (["--hosts", "a,,b", "--index", "0", "train.py"], "a name is empty"),
        (["--hosts", "a,a", "--index", "0", "train.py"], "there twice"),
        (["--hosts", "a", "--port", "0", "--index", "0", "train.py"], "1 to 65535"),
    ],
)
def test_what_cannot_be_meant_is_bad_usage(run, words, complaint):
    done = run(*words, body="")
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
