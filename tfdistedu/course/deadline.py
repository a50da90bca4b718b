"""How is a learner's endless loop ended, and how does one say where it was?

The idea: an alarm rings in the main thread, between two of its bytecodes, wherever it is.

    with deadline(5, file):          5 s later, if the body still runs:
        learners_function()     -->  DeadlineExceeded: it did not end within 5 s; it was at exercise.py:12: while True:

Costs: two system calls. Leaves out: a call into C that never comes back to Python. For those there is `hard`: a second
alarm in another thread, which says what it can and ends the process. Outside of the main thread there is no alarm.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

from tfdistedu.errors import DeadlineExceeded

_GRACE = 3.0


class _Alarm(BaseException):
    """Ends the body; no `except Exception` catches it, and it rings again if something else does."""


@contextlib.contextmanager
def deadline(seconds: float, file: Path | str = "", hard: bool = False) -> Iterator[None]:
    """End the body after some seconds, and say where it was.

    Args:
        seconds: How long it may take.
        file: Lines of this file are named rather than others.
        hard: Whether a body that cannot be interrupted ends the process (status 124).

    Yields:
        Nothing.

    Raises:
        DeadlineExceeded: The body took longer.

    Example:
        >>> with deadline(0.05):
        ...     while True:
        ...         pass
        Traceback (most recent call last):
        ...
        tfdistedu.errors.DeadlineExceeded: it did not end within 0.05 s; it was at <doctest ...

    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    where = ""

    def ring(_: int, frame: FrameType | None) -> None:
        nonlocal where
        where = where or place(frame, file)
        raise _Alarm

    def give_up() -> None:
        os.write(2, f"\n{file}: it did not end within {seconds:g} s and cannot be interrupted.\n".encode())
        os._exit(DeadlineExceeded.exit_status)

    last_resort = threading.Timer(seconds + _GRACE, give_up) if hard else None
    before = signal.signal(signal.SIGALRM, ring)
    others = signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    if last_resort:
        last_resort.daemon = True
        last_resort.start()
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if where:  # it rang, and the body swallowed it
            raise _Alarm
    except _Alarm:
        raise DeadlineExceeded(
            f"it did not end within {seconds:g} s; it was at {where}. Is there a loop without an end?"
        ) from None
    finally:
        if last_resort:
            last_resort.cancel()
        signal.signal(signal.SIGALRM, before)
        if others[0]:
            signal.setitimer(signal.ITIMER_REAL, *others)


def place(frame: FrameType | None, file: Path | str = "") -> str:
    """Say at which line a frame is: the innermost one in a file if there is one, else the frame's own.

    Args:
        frame: A frame.
        file: A path.

    Returns:
        "exercise.py:12: while True:".

    """
    at = frame
    while at is not None and at.f_code.co_filename != str(file):
        at = at.f_back
    at = at or frame
    return "?" if at is None else _line(at.f_code.co_filename, at.f_lineno)


def own_lines(trace: TracebackType | None, file: Path | str) -> list[str]:
    """Return the lines of a traceback that lie in one file, outermost first, each once: a recursion is not repeated.

    Args:
        trace: A traceback.
        file: The learner's file.

    Returns:
        One "exercise.py:12: the line's text" for each line.

    """
    lines = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            lines.append(_line(str(file), trace.tb_lineno))
        trace = trace.tb_next
    return list(dict.fromkeys(lines))


def _line(file: str, number: int) -> str:
    """Write a place as "exercise.py:12: text"."""
    linecache.checkcache(file)
    text = linecache.getline(file, number).strip()
    return f"{os.path.basename(file)}:{number}" + (f": {text}" if text else "")
