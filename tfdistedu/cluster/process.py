"""How does a launcher hold a process, and make sure that it is gone?

By a handle on the process itself (on Linux a pidfd), not by its number, which may be another's once it is gone.

Cost: one descriptor a task. Left out: processes that this launcher did not start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from tfdistedu.errors import DeadlineExceeded

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has none; there the other one ends a process as well


class Birth(NamedTuple):
    """What a new task is given: a `request` (see `tfdistedu.cluster.task.become`), descriptors `out` and `err`."""

    request: dict[str, Any]
    out: int
    err: int


class Process:
    """One task as its launcher holds it: its line `control`, its `pid`, and whether and how it ended."""

    def __init__(self, pid: int, control: Connection, folder: str, reap: Callable[[], int | None], handle: Any):
        self.pid, self.control, self.folder = pid, control, folder
        self._reap, self._handle = reap, handle
        self._status: int | None = None
        self._ended = False
        self._lock = threading.RLock()
        self.paused = False

    @property
    def sentinel(self) -> Any:
        """Something for `multiprocessing.connection.wait` that is ready when the process has ended, or `None`."""
        return self._handle if isinstance(self._handle, int) and not self._ended else None

    def ended(self) -> bool:
        """Tell whether the process is gone.

        Returns:
            Whether it is; its status is known then.

        """
        with self._lock:  # a slowed task is looked at by two threads
            if not self._ended:
                is_pidfd = isinstance(self._handle, int)
                if wait([self._handle], 0) if is_pidfd else self._handle.poll() is not None:
                    self._status = self._reap()
                    self._ended = True
                    if is_pidfd:
                        os.close(self._handle)
            return self._ended

    def how_it_ended(self) -> str:
        """Say how it ended, for messages.

        Returns:
            Such as "ended by SIGKILL", "ended with status 1", "runs".

        """
        if not self.ended():
            return "runs"
        if self._status is None:
            return "ended together with the server of the cluster"
        if self._status < 0:
            return f"ended by {signal.Signals(-self._status).name}"
        return f"ended with status {self._status}"

    @property
    def status(self) -> int | None:
        """The exit status (negative: the signal), `None` while it runs or where it cannot be known."""
        return self._status

    def signal(self, number: int) -> None:
        """Send a signal, if the process is still there.

        Args:
            number: Such as `signal.SIGKILL`.

        """
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self.ended():
                return
            if isinstance(self._handle, int):
                signal.pidfd_send_signal(self._handle, number)
            else:
                self._handle.send_signal(number)

    def kill(self, deadline: float = 10.0) -> None:
        """End the process at once, and wait until it is gone.

        Args:
            deadline: Seconds to wait.

        Raises:
            DeadlineExceeded: It is not gone.

        """
        self.signal(KILL)
        end = time.monotonic() + deadline
        while not self.ended():
            if time.monotonic() > end:
                raise DeadlineExceeded(f"process {self.pid} was killed and is still there after {deadline:g} s.")
            if self.sentinel is not None:
                wait([self.sentinel], 0.5)
            else:
                time.sleep(0.01)

    def clear(self) -> None:
        """Close its line and remove its folder, once it is gone."""
        self.control.close()
        shutil.rmtree(self.folder, ignore_errors=True)
