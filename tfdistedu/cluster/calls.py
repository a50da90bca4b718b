"""How does one wait for a function that runs on many tasks, and never for ever?

Each task answers on a line of its own: a task that is killed while it writes blocks nobody else. A wait ends when all
have answered or ended, when the deadline passes, or, for `results`, some seconds after the first failure: the tasks
that need the failed one will mostly fail too, and their errors help, but one must not wait for them.

    worker:0  ----------- value ------>|
    worker:1  --- error -->|           |        results(): TaskFailed, with both
    worker:2  -- (SIGKILL) |           |        "ended by SIGKILL before it answered"
                           |<- grace ->|

Cost: none while waiting. Left out: to take a call back; kill or restart the task.
"""

from __future__ import annotations

import time
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from tfdistedu.cluster import sending
from tfdistedu.cluster.outcome import Outcome, TaskFailed
from tfdistedu.errors import DeadlineExceeded

if TYPE_CHECKING:
    from tfdistedu.cluster.local import LocalCluster
    from tfdistedu.cluster.process import Process

GRACE = 2.0  # seconds that the other tasks have to fail, too
_POLL = 0.05  # seconds between looks, where the end of a process cannot be waited for


class Running:
    """A function that runs on some tasks, made by `LocalCluster.start`; `results` and `outcomes` wait for it."""

    def __init__(self, cluster: LocalCluster, what: str, processes: dict[str, Process], call: bytes | None):
        self.what = what
        self._cluster = cluster
        self._waiting = dict(processes)
        self._order = list(processes)
        self._outcomes: dict[str, Outcome] = {}
        self._since = time.monotonic()
        for name, process in processes.items() if call else ():
            try:
                process.control.send_bytes(call)
            except OSError:  # it ended just now
                self._ended(name)

    def pending(self) -> list[str]:
        """Name the tasks that have not answered yet.

        Returns:
            Their names; empty when all is over.

        """
        self._collect(0)
        return list(self._waiting)

    def outcomes(self, deadline: float | None = None) -> dict[str, Outcome]:
        """Wait for all tasks, and tell how each ended; a failure does not raise.

        Args:
            deadline: Seconds from the call on; `None`: the cluster's.

        Returns:
            How it ended, by the task's name.

        Raises:
            DeadlineExceeded: Tasks did not answer; the message names them and says where they stand.

        """
        return self._wait(deadline, grace=None)

    def results(self, deadline: float | None = None) -> dict[str, Any]:
        """Wait for all tasks, and give what the function returned.

        Args:
            deadline: Seconds from the call on; `None`: the cluster's.

        Returns:
            What it returned, by the task's name.

        Raises:
            TaskFailed: It raised on a task, or a task ended.
            DeadlineExceeded: Tasks did not answer; the message names them and says where they stand.

        """
        outcomes = self._wait(deadline, grace=GRACE)
        if any(outcome.error is not None for outcome in outcomes.values()):
            raise TaskFailed(self.what, outcomes, list(self._waiting))
        return {name: outcome.value for name, outcome in outcomes.items()}

    def _wait(self, deadline: float | None, grace: float | None) -> dict[str, Outcome]:
        deadline = self._cluster.deadline if deadline is None else deadline
        end = self._since + deadline
        failed_at = None
        while self._waiting:
            now = time.monotonic()
            if failed_at is None and any(outcome.error is not None for outcome in self._outcomes.values()):
                failed_at = now
            if grace is not None and failed_at is not None and now > failed_at + grace:
                break
            if now >= end:
                raise self._deadline_exceeded(deadline)
            self._collect(min(end - now, GRACE / 4))
        return {name: self._outcomes[name] for name in self._order if name in self._outcomes}

    def _collect(self, timeout: float) -> None:
        """Take the answers that are there, or come within a time."""
        objects = [process.control for process in self._waiting.values()]
        sentinels = [process.sentinel for process in self._waiting.values()]
        if None in sentinels:
            timeout = min(timeout, _POLL)
        objects += [sentinel for sentinel in sentinels if sentinel is not None]
        ready = wait(objects, timeout) if objects else []
        for name, process in list(self._waiting.items()):
            try:
                # An answer first: a task may have answered and ended.
                if process.control in ready or (process.ended() and process.control.poll(0)):
                    answer = sending.loads(process.control.recv_bytes())
                    self._finish(name, Outcome(answer.get("value"), answer.get("error"), answer.get("traceback", "")))
                elif process.ended():
                    self._ended(name)
            except (EOFError, OSError):
                process.kill()  # it closed its line: it is ending
                self._ended(name)

    def _ended(self, name: str) -> None:
        process = self._waiting[name]
        self._finish(name, Outcome(error=f"{process.how_it_ended()} before it answered"))

    def _finish(self, name: str, outcome: Outcome) -> None:
        self._outcomes[name] = outcome._replace(seconds=time.monotonic() - self._since)
        del self._waiting[name]

    def _deadline_exceeded(self, deadline: float) -> DeadlineExceeded:
        stacks = self._cluster.stacks(*self._waiting)
        missing = ", ".join(self._waiting)
        parts = [
            f"{self.what}: no answer within {deadline:g} s from {missing}. Where they stand, innermost call first:"
        ]
        parts += [f"{name}:\n{_main_thread(text)}" for name, text in stacks.items()]
        error = DeadlineExceeded("\n\n".join(parts))
        error.stacks = stacks
        return error


def _main_thread(stacks: str) -> str:
    """Cut what one wants to see out of what faulthandler wrote: the innermost call, and the caller's own lines."""
    for part in stacks.split("\n\n"):
        head, *lines = part.splitlines() or [""]
        if lines and head.startswith("Current thread"):
            within = ("/site-packages/", "/tfdistedu/cluster/", "<frozen runpy>")
            own = [line for line in lines[1:] if not any(name in line for name in within)]
            return "\n".join([lines[0], *own[:12]])
    return f"  {stacks}"
