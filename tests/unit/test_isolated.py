"""Work in a process of its own: a crash, a hang and a print must stay there."""

from __future__ import annotations

import time

import pytest

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
