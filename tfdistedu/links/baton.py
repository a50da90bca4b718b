"""How do threads take turns, and how are they ended for certain? One baton, and two ways to stop.

The idea: every rank's thread sleeps until it is given the baton, and hands it back when it pauses or ends. So only one
of them runs at any time, and the order is the scheduler's.

    scheduler   go --->                 <--- back    go ---> ...
    rank 1            runs . . . pause                       (sleeps until its next turn)

Stopping: a thread that sleeps is woken and finds an exception waiting for it; one that runs an endless loop gets the
same exception from outside, between two of its bytecodes.

Costs: two semaphores a switch. Leaves out: a thread inside a call that never returns to Python cannot be ended; it is a
daemon, so that it does not keep the process alive.
"""

from __future__ import annotations

import contextlib
import ctypes
import linecache
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

_HERE = os.path.dirname(__file__)
_OWN_FILES = {
    __file__,
    threading.__file__,
    *(os.path.join(_HERE, name) for name in ("memory.py", "meeting.py", "scheduler.py")),
}


class Place(NamedTuple):
    """A line in somebody's program.

    Attributes:
        file: The file's path.
        line: The line's number, from 1.
    """

    file: str
    line: int

    def __str__(self) -> str:
        """Write it as "ring.py:12: x = link.recv(left)"."""
        text = linecache.getline(self.file, self.line).strip()
        return f"{os.path.basename(self.file)}:{self.line}" + (f": {text}" if text else "")


def place_of_caller() -> Place:
    """Return the innermost line of this thread that lies outside the links."""
    return _place(sys._getframe(1))


def _place(frame: FrameType | None) -> Place:
    """Return the innermost line at or above a frame that lies outside the links."""
    while frame is not None and frame.f_code.co_filename in _OWN_FILES and frame.f_back is not None:
        frame = frame.f_back
    return Place("?", 0) if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)


def _place_of_error(error: BaseException) -> Place:
    """Return the innermost line outside the links through which an exception came."""
    trace, place = error.__traceback__, Place("?", 0)
    while trace is not None:
        if trace.tb_frame.f_code.co_filename not in _OWN_FILES:
            place = Place(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return place


class _Stopped(BaseException):
    """Ends a rank's thread; no `except Exception` in a program catches it."""


class RankThread:
    """One rank's program in a thread that runs only when it is told to.

    Attributes:
        rank: Which rank.
        finished: Whether the program has ended.
        result: What it returned.
        error: What it raised, or `None`.
        failed_at: Where it raised.
    """

    rank: int
    finished: bool
    result: Any
    error: BaseException | None
    failed_at: Place | None

    def __init__(self, rank: int, program: Callable[[], Any]) -> None:
        """Make the thread; it starts with its first turn.

        Args:
            rank: Which rank.
            program: What it runs.

        """
        self.rank, self.finished, self.result, self.error, self.failed_at = rank, False, None, None, None
        self._program = program
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._stopping = False
        self._thread = threading.Thread(target=self._quietly, name=f"rank {rank}", daemon=True)

    def run_until_pause(self, seconds: float) -> bool:
        """Give the thread the baton, and wait until it hands it back.

        Args:
            seconds: How long to wait for it.

        Returns:
            Whether it came back in time.

        """
        if self._thread.ident is None:
            self._thread.start()
        self._go.release()
        return self._back.acquire(timeout=max(seconds, 0.0))

    def pause(self) -> None:
        """Hand the baton back and sleep until the next turn; called by the rank's own thread."""
        self._back.release()
        self._go.acquire()
        if self._stopping:
            raise _Stopped

    def place(self) -> Place:
        """Return the line at which the thread is now."""
        return _place(sys._current_frames().get(self._thread.ident))

    def stop(self, seconds: float = 2.0) -> None:
        """End the thread, whatever it does.

        Args:
            seconds: How long to try; only a call that never returns to Python takes longer.

        """
        self._stopping = True
        end = time.monotonic() + seconds
        while self._thread.is_alive() and time.monotonic() < end:
            self._go.release()
            self._thread.join(0.02)
            if self._thread.is_alive():
                kind = ctypes.py_object(_Stopped)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), kind)

    def _quietly(self) -> None:
        """Run the thread; a stop that comes in its very last line is no news."""
        with contextlib.suppress(_Stopped):
            self._main()

    def _main(self) -> None:
        """Wait for the first turn, run the program, keep what it returned or raised."""
        try:
            self._go.acquire()
            if not self._stopping:
                self.result = self._program()
        except _Stopped:
            pass
        except BaseException as error:
            self.error = error
            self.failed_at = _place_of_error(error)
        finally:
            self.finished = True
            self._back.release()
