"""What can happen to a task of a cluster, on purpose?

    kill     SIGKILL: gone at once, without a word to anybody          a crash, a machine that lost its power
    pause    SIGSTOP: holds still, its connections stay open           a hang, a network that swallows all
    resume   SIGCONT: goes on where it stood                           the pause is over
    restart  a new process with the same name and address              what a cluster manager does after a crash
    slow     stopped for a part of each 30 ms                          a straggler: another job on its machine

`slow(task, 3)` lets a task run for 10 ms of each 30 ms: it computes three times slower, and answers late
by up to 20 ms.

Cost: a thread for each slowed task. Left out: lost or reordered messages, disks that are full.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from tfdistedu.errors import BadInput, TfdisteduError

if TYPE_CHECKING:
    from tfdistedu.cluster.process import Process

_PERIOD = 0.03  # seconds


class Faults:
    """The faults of a cluster, as its methods."""

    _slowed: dict[str, Slowdown]

    if TYPE_CHECKING:  # what the cluster has, whose methods these become

        def _process(self, task: str) -> Process: ...

        def _start(self, tasks: list[str]) -> None: ...

    def kill(self, *tasks: str) -> None:
        """Kill tasks with SIGKILL, and wait until they are gone.

        Args:
            *tasks: Their names, such as `"worker:1"`.

        """
        for task in tasks:
            self._end_slowdown(task)
            self._process(task).kill()

    def pause(self, *tasks: str) -> None:
        """Stop tasks where they stand, until `resume`.

        Args:
            *tasks: Their names.

        """
        for task in tasks:
            self._end_slowdown(task)
            self._alive(task).signal(_signal("SIGSTOP"))
            self._process(task).paused = True

    def resume(self, *tasks: str) -> None:
        """Let paused tasks go on.

        Args:
            *tasks: Their names.

        """
        for task in tasks:
            self._alive(task).signal(_signal("SIGCONT"))
            self._process(task).paused = False

    def slow(self, task: str, factor: float) -> None:
        """Let a task run for a part of the time only.

        Args:
            task: Its name.
            factor: How many times slower it computes; 1 ends the slowness.

        Raises:
            BadInput: A factor below 1, or above 100.

        """
        if not 1 <= factor <= 100:
            raise BadInput(f"slow({task!r}, {factor}): the factor says how many times slower, from 1 (not) to 100.")
        process = self._alive(task)
        if process.paused:
            raise BadInput(f"slow({task!r}): the task is paused; resume it first.")
        self._end_slowdown(task)
        if factor > 1:
            self._slowed[task] = Slowdown(process, factor)

    def restart(self, *tasks: str) -> None:
        """Start tasks again, with the same names and addresses; those that still run are killed first.

        A strategy that keeps step is made once a process, so all its workers have to be restarted.

        Args:
            *tasks: Their names; none means all.

        """
        names = list(tasks) or self.tasks
        self.kill(*names)
        self._start(names)

    def _alive(self, task: str) -> Process:
        process = self._process(task)
        if process.ended():
            raise TfdisteduError(f"{task} {process.how_it_ended()}; restart({task!r}) starts it again.")
        return process

    def _end_slowdown(self, task: str) -> None:
        slowdown = self._slowed.pop(task, None)
        if slowdown is not None:
            slowdown.end()


class Slowdown:
    """A thread that stops a process for a part of each period."""

    def __init__(self, process: Process, factor: float):
        self._process = process
        self._over = threading.Event()
        self._run, self._stop = _PERIOD / factor, _PERIOD * (1 - 1 / factor)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._over.is_set() and not self._process.ended():
            self._process.signal(_signal("SIGSTOP"))
            self._over.wait(self._stop)
            self._process.signal(_signal("SIGCONT"))
            self._over.wait(self._run)

    def end(self) -> None:
        """Let the process run freely again."""
        self._over.set()
        self._thread.join()


def _signal(name: str) -> int:
    number = getattr(signal, name, None)
    if number is None:
        raise BadInput(f"this system has no {name}, so a task can only be killed and restarted.")
    return number
