"""What does a TF_CONFIG say, once it is known to be right?

    ClusterConfig
      tasks   (Task("worker", 0, "a:2222"), Task("worker", 1, "b:2222"))    who there is
      me      ("worker", 1)                                                 which of them this process is
      rest    (("rpc_layer", '"grpc"'),)                                    what other programs wrote beside it

Immutable, and equal when they mean the same: `parse(config.render()).config == config`. Left out: checks; a config made
by hand can be wrong, one that `parse` or `build` gave is not.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from typing import NamedTuple

# The jobs that TensorFlow's strategies know, in the order in which we list tasks.
JOBS = ("chief", "worker", "ps", "evaluator")


class Task(NamedTuple):
    """One process of the cluster: its job, its number in the job, and where it listens."""

    job: str
    index: int
    address: str

    @property
    def name(self) -> str:
        """The task in short, such as "worker:0"."""
        return f"{self.job}:{self.index}"


@dataclass(frozen=True)
class ClusterConfig:
    """A TF_CONFIG as a value.

    Attributes:
        tasks: All tasks of the cluster, in the order of `JOBS` and then by index.
        me: Job and index of this process; `None` where the text names no task (a coordinator may do without).
        rest: Other keys of the text, each with its value as JSON, sorted.

    Example:
        >>> config = ClusterConfig((Task("worker", 0, "a:2222"), Task("worker", 1, "b:2222")), ("worker", 1))
        >>> config.name, config.address, [task.name for task in config.others]
        ('worker:1', 'b:2222', ['worker:0'])

    """

    tasks: tuple[Task, ...] = ()
    me: tuple[str, int] | None = None
    rest: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str | None:
        """This process's task in short, such as "worker:1"; `None` without a task."""
        return f"{self.me[0]}:{self.me[1]}" if self.me else None

    @property
    def address(self) -> str | None:
        """Where this process listens; `None` without a task, and for an evaluator, which listens nowhere."""
        return next((task.address for task in self.tasks if (task.job, task.index) == self.me), None)

    @property
    def others(self) -> tuple[Task, ...]:
        """All tasks of the cluster but this process."""
        return tuple(task for task in self.tasks if (task.job, task.index) != self.me)

    def of(self, job: str) -> tuple[Task, ...]:
        """Return the tasks of one job.

        Args:
            job: Such as "worker".

        Returns:
            Its tasks by index; none if there is no such job.

        """
        return tuple(task for task in self.tasks if task.job == job)

    def as_task(self, job: str, index: int) -> ClusterConfig:
        """Return what another process of the same cluster reads.

        Args:
            job: Such as "worker".
            index: Its number in the job, from 0.

        Returns:
            The same cluster with another `me`.

        """
        return replace(self, me=(job, index))

    def as_json(self) -> dict:
        """Return the dictionary that TensorFlow reads: a job is a list, or an object where indices are left out.

        Returns:
            `{"cluster": {...}, "task": {...}}`, without what is not there, and the other keys after these.

        """
        data: dict = {}
        if self.tasks:
            data["cluster"] = {}
            for job in JOBS:
                tasks = self.of(job)
                if tasks:
                    dense = [task.index for task in tasks] == list(range(len(tasks)))
                    sparse = {str(task.index): task.address for task in tasks}
                    data["cluster"][job] = [task.address for task in tasks] if dense else sparse
        if self.me:
            data["task"] = {"type": self.me[0], "index": self.me[1]}
        return data | {key: json.loads(value) for key, value in self.rest}

    def render(self) -> str:
        """Write the canonical JSON: what one puts into the environment.

        Returns:
            One line of ASCII.

        Example:
            >>> print(ClusterConfig((Task("worker", 0, "a:2222"),), ("worker", 0)).render())
            {"cluster": {"worker": ["a:2222"]}, "task": {"type": "worker", "index": 0}}

        """
        return json.dumps(self.as_json())

    def shell(self) -> str:
        """Write the line that sets the variable in a shell, with quotes that every POSIX shell leaves alone.

        Returns:
            `export TF_CONFIG='...'`.

        """
        return f"export TF_CONFIG={shlex.quote(self.render())}"
