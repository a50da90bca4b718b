"""Work in a process of its own: a crash, a hang and a print must stay there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fresh_process import ROOT

# In a process that holds TensorFlow asleep, where a child is forked; the test's own process is awake.
FORKED = """
import os, signal, sys, time
from tfdistedu.bench.isolated import run_isolated
from tfdistedu.quiet import import_tensorflow, is_awake

tf = import_tensorflow()

def dies(): os.kill(os.getpid(), signal.SIGKILL)
def leaves(): os._exit(3)
def hangs(): time.sleep(60)
def prints(): print("noise"); print("noise", file=sys.stderr); return 1
def wakes(): return float(tf.constant(2.0) + 1), is_awake()
def raises(): raise ValueError("\\nfirst\\nsecond")

print(run_isolated(dies).error)
print(run_isolated(leaves).error)
print(run_isolated(hangs, deadline=0.2).error)
print(run_isolated(prints))
print(run_isolated(wakes).value, is_awake())
print(run_isolated(raises).error)
"""

# A child that hangs; its number is told on stdout, which is thrown away in the child itself.
HANGING = """
import os, sys, tempfile, time
from tfdistedu.bench.isolated import run_isolated
from tfdistedu.cli import app, main

def hangs(told):
    tempfile.mkstemp()
    os.write(told, f"{os.getpid()} {tempfile.gettempdir()}\\n".encode())
    time.sleep(60)

@app.command()
def hang() -> None:
    run_isolated(hangs, os.dup(1))

main(["hang"])
"""


def test_no_end_of_a_forked_child_spoils_the_next_one(fresh_processes):
    finished = fresh_processes.run(FORKED)
    assert finished.stderr == ""
    assert finished.stdout.splitlines() == [
        "ended by SIGKILL",
        "ended with status 3 and without an answer",
        "no answer within 0.2 s",
        "Ended(value=1, error=None)",
        "(3.0, True) False",
        "ValueError: first",
    ]


def test_a_process_in_which_tensorflow_is_awake_starts_children_anew(strategy_with):
    from tfdistedu.bench.isolated import run_isolated
    from tfdistedu.quiet import is_awake

    strategy_with(2)
    assert is_awake()
    assert run_isolated(divmod, 7, 2).value == (3, 1)
    started = time.perf_counter()
    assert run_isolated(time.sleep, 60, deadline=1.0).error == "no answer within 1 s"
    assert time.perf_counter() - started < 10


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ('in user code:\n\n    File "x.py", line 1\n\n    ValueError: told\n', "RuntimeError: ValueError: told"),
        ("", "RuntimeError"),
    ],
)
def test_the_first_line_of_an_error_of_tensorflow_is_what_it_tells(message, line):
    from tfdistedu.bench.isolated import first_line

    assert first_line(RuntimeError(message)) == line


def test_what_a_child_leaves_in_the_temporary_folder_goes_with_it(fresh_processes):
    """AutoGraph leaves a file for every function that it traced, for the child ends without clean-up."""
    code = """
import os, tempfile
from tfdistedu.bench.isolated import run_isolated
here = tempfile.gettempdir()  # remembered in this process, and so in a fork of it
before = os.listdir(here)
path = run_isolated(lambda: tempfile.mkstemp()[1]).value
print(os.path.exists(path), os.listdir(here) == before)
"""
    assert fresh_processes.run(code).stdout == "False True\n"


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_no_child_outlives_a_command_that_was_ended(sent, status):
    """Its own deadline would end it too, a minute later."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HANGING], cwd=ROOT, env=environment, text=True, **pipes) as process:
        child, folder = process.stdout.readline().split()
        process.send_signal(sent)
        assert process.wait(timeout=20) == status
        started = time.perf_counter()
        while _is_alive(child):
            assert time.perf_counter() - started < 5
            time.sleep(0.02)
    assert Path(folder).exists() is (sent == signal.SIGKILL)  # nobody is left to remove it
    shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
