"""How is a piece of work run so that its crash, its hang or its leftovers spoil nothing else?

In a process of its own, with a deadline. Importing TensorFlow costs seconds, so this process imports it once, never
uses it, and forks: each child wakes TensorFlow for itself, with devices of its own.

    this process   imports TensorFlow, stays asleep ----fork----fork----fork---->  collects answers
    children                                            work    work    work      each ends, or is ended

Cost: a few hundredths of a second a child. Where forking is not safe (TensorFlow is awake, or not Linux) each child is
started anew and imports for itself: the same answers, some seconds a child.
Left out: several at once; what children print is thrown away.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from tfdistedu.quiet import is_awake


class Ended(NamedTuple):
    """How a piece of work ended: its `value`, or what went wrong in `error`, one line; the other is `None`."""

    value: Any
    error: str | None


def run_isolated(work: Callable[..., Any], *arguments: Any, deadline: float = 60.0) -> Ended:
    """Run a function in a process of its own, and wait for its end.

    Args:
        work: A function of a module (a child that is started anew must find it by name).
        *arguments: What it takes; they and its value must be picklable.
        deadline: Seconds after which it is killed.

    Returns:
        Its value, or the first line of what it raised, the signal that ended it, or that it gave no answer in time.

    Example:
        >>> run_isolated(divmod, 7, 2)
        Ended(value=(3, 1), error=None)
        >>> run_isolated(int, "seven").error
        "ValueError: invalid literal for int() with base 10: 'seven'"

    """
    may_fork = sys.platform.startswith("linux") and not is_awake()
    context = multiprocessing.get_context("fork" if may_fork else "spawn")
    receiver, sender = context.Pipe(duplex=False)
    # AutoGraph leaves a file in the temporary folder for every function that it traced.
    with tempfile.TemporaryDirectory(prefix="tfdistedu-", ignore_cleanup_errors=True) as temporary:
        child = context.Process(target=_answer, args=(sender, deadline, temporary, work, arguments), daemon=True)
        try:
            child.start()  # inside of the try: a signal may end this process as soon as the child is there
            sender.close()  # so that the end of the child ends the pipe
            if not receiver.poll(deadline):
                return Ended(None, f"no answer within {deadline:g} s")
            return receiver.recv()
        except EOFError:
            child.join(5)
            return Ended(None, _how_it_ended(child.exitcode))
        finally:
            if child.pid is not None:
                child.kill()
                child.join()
            receiver.close()


def _answer(sender: Connection, deadline: float, temporary: str, work: Callable[..., Any], arguments: tuple) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: this process goes when its parent goes
    tempfile.tempdir = os.environ["TMPDIR"] = temporary
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    if hasattr(signal, "alarm"):
        signal.alarm(int(deadline) + 5)  # where nothing else ends the child of a killed parent
    try:
        ended = Ended(work(*arguments), None)
    except Exception as error:
        ended = Ended(None, first_line(error))
    sender.send(ended)
    sender.close()
    os._exit(0)  # no clean-up of what the parent owns, no second copy of what it had not printed yet


def first_line(error: Exception) -> str:
    """Say an error in one line.

    Args:
        error: Any exception; TensorFlow's run over pages.

    Returns:
        Its class and the first line of its message that is neither empty nor a place in the code.

    """
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("File ", "in user code:", "Traceback"))]
    return f"{type(error).__name__}: {told[0]}" if told else type(error).__name__


def _how_it_ended(status: int | None) -> str:
    if status is not None and status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"ended with status {status} and without an answer"
