"""How does a real cluster start in a fraction of a second, on this machine, and end without a trace?

    with LocalCluster(workers=2, ps=1) as cluster:        processes, each with its TF_CONFIG
        results = cluster.run(function, argument)         on each task, at once; {"worker:0": value, ...}
        cluster.kill("worker:1")                          faults are methods: `tfdistedu.cluster.faults`

    this process                 the server                     tasks
      LocalCluster --fork-->  TensorFlow, imported  --fork-->  worker:0   TF_CONFIG, pipes, folder of its own
          |                                          --fork-->  worker:1
          |<============== calls, results, output ===============>|

Every wait has a deadline, and names whom it waited for; when it passes, the stacks of the tasks that did not answer are
shown. However the context ends (its end, an exception, Ctrl-C, SIGKILL of this process or of the server): no process,
port or temporary file of the cluster is left. The server stays for the next cluster, and ends with this process.

With `ps`, workers and parameter servers *serve* (`tf.distribute.Server`) until the context ends. The coordinator is the
chief if there is one, else this process: `cluster.resolver()` is what `ParameterServerStrategy` takes.

Cost: some 3 s for the first cluster of a process (TensorFlow's import), then about 0.05 s a task.
Left out: other machines.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tfdistedu.cluster import sending
from tfdistedu.cluster.calls import Running
from tfdistedu.cluster.faults import Faults
from tfdistedu.cluster.forks import Server, can_fork, kept_server
from tfdistedu.cluster.members import Members
from tfdistedu.cluster.new_processes import NewProcesses
from tfdistedu.cluster.output import Output
from tfdistedu.cluster.process import KILL, Birth, Process
from tfdistedu.cluster.task import TASK
from tfdistedu.errors import BadInput


def _serve() -> None:
    """Be a worker or a parameter server, on threads of TensorFlow's own, until the process ends."""
    import tensorflow as tf

    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    _serve.server = tf.distribute.Server(
        tf.train.ClusterSpec(config["cluster"]), job_name=task["type"], task_index=task["index"], protocol="grpc"
    )


class LocalCluster(Members, Faults):
    """A cluster of processes on this machine, as a context manager.

    Its `tasks` are their names, such as `["worker:0", "worker:1"]`; its `addresses` are those of TF_CONFIG, by job.

    Args:
        workers: Number of workers.
        ps: Number of parameter servers; with any, workers and parameter servers serve.
        chief: Whether there is a chief: the first of the workers that keep step, or the coordinator.
        evaluator: Whether there is an evaluator: a task that is no member of the cluster and reads checkpoints.
        deadline: Seconds that `run` waits unless it is told otherwise.
        start_deadline: Seconds that the start may take.
        env: Environment variables for the tasks, on top of this process's; `None` as a value removes one.
        warm: Whether to use the server that stays in this process; else one of its own is started, and ended.
        echo: Whether what tasks write is shown, each line under its task's name. It is kept in any case.
        fork: Whether tasks are forked from a server; `None`: where that is possible. Else each is a new process.

    Raises:
        BadInput: Numbers of tasks that make no cluster.

    """

    def __init__(
        self,
        workers: int = 2,
        ps: int = 0,
        chief: bool = False,
        evaluator: bool = False,
        *,
        deadline: float = 60.0,
        start_deadline: float = 60.0,
        env: dict[str, str | None] | None = None,
        warm: bool = True,
        echo: bool = True,
        fork: bool | None = None,
    ):
        super().__init__(workers, ps, chief, evaluator)
        self.deadline, self.start_deadline = deadline, start_deadline
        self._env = env or {}
        self._warm, self._fork = warm, can_fork() if fork is None else fork
        self._output = Output(echo)
        self._processes: dict[str, Process] = {}
        self._busy: dict[str, Running] = {}
        self._slowed = {}
        self._path: list[str] | None = None
        self._server: Server | NewProcesses | None = None
        self._own_server = False

    def __enter__(self) -> LocalCluster:
        if self._server is not None:
            raise BadInput("this LocalCluster was used already; make a new one.")
        try:
            self._server = self._get_server()
            self.reserve()
            self._start(self.tasks)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all tasks, wait until they are gone, and remove what they wrote into their temporary folders."""
        with contextlib.ExitStack() as last:  # each of these happens, also when another fails
            if self._own_server and self._server is not None:
                last.callback(self._server.stop)
                self._own_server = False
            last.callback(self._output.close)
            for process in self._processes.values():
                last.callback(process.clear)
                last.callback(process.kill)
            for process in self._processes.values():
                last.callback(process.signal, KILL)  # all of them first, so that none waits for another
            for task in list(self._slowed):
                last.callback(self._end_slowdown, task)

    def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        on: str | list[str] | None = None,
        deadline: float | None = None,
        **keywords: Any,
    ) -> dict[str, Any]:
        """Run a function on each task at once, and wait for all.

        Args:
            function: Any function; what it needs of this process travels with it (see `tfdistedu.cluster.sending`).
            *arguments: Its arguments, the same on each task.
            on: A task (`"worker:0"`), a job (`"worker"`) or a list of these; `None`: all that do not serve.
            deadline: Seconds to wait; `None`: the cluster's.
            **keywords: Its arguments by name.

        Returns:
            What it returned, by the task's name; tensors as NumPy arrays.

        Raises:
            TaskFailed: It raised on a task, or a task ended; the message shows the traceback under the task's name.
            DeadlineExceeded: Tasks did not answer; the message names them and says where they stand.
            BadInput: Something that cannot be sent, no such task, or a task that is still busy.

        """
        return self.start(function, *arguments, on=on, **keywords).results(deadline)

    def start(
        self, function: Callable[..., Any], *arguments: Any, on: str | list[str] | None = None, **keywords: Any
    ) -> Running:
        """Start a function on each task, and do not wait: there is time to break something meanwhile.

        Args:
            function: As for `run`.
            *arguments: As for `run`.
            on: As for `run`.
            **keywords: As for `run`.

        Returns:
            What runs; `results()` and `outcomes()` wait for it.

        Raises:
            BadInput: Something that cannot be sent, no such task, or a task that is still busy.

        """
        names = self._names(on)
        call = sending.dump_call(function, arguments, keywords)
        for name in names:
            if name in self._busy and name in self._busy[name].pending():
                raise BadInput(f"{name} is still busy with {self._busy[name].what}; wait for it, or restart({name!r}).")
            self._alive(name)
        what = getattr(function, "__name__", "the function")
        running = Running(self, what, {name: self._process(name) for name in names}, call)
        self._busy |= dict.fromkeys(names, running)
        return running

    def output(self, task: str) -> str:
        """Return what a task has written so far, over all its restarts.

        Args:
            task: Its name.

        Returns:
            Both its streams, in the order in which they came.

        """
        self._process(task)
        self._output.settle(quiet=0.03)
        return self._output.text(task)

    def stacks(self, *tasks: str) -> dict[str, str]:
        """Ask tasks where they stand: the Python stacks of all their threads, also while they wait in TensorFlow.

        Args:
            *tasks: Their names; none means all.

        Returns:
            The stacks by task; for a task that cannot answer, why.

        """
        before, told = {}, {}
        for task in tasks or self.tasks:
            process = self._process(task)
            if process.ended():
                told[task] = f"({process.how_it_ended()})"
            elif process.paused:
                told[task] = "(paused)"
            else:
                before[task] = len(self._output.text(task))
                process.signal(signal.SIGUSR1)
        self._output.settle(quiet=0.15, at_most=2.0)
        for task, length in before.items():
            told[task] = self._output.text(task)[length:].strip() or "(no answer)"
        return told

    def _get_server(self) -> Server | NewProcesses:
        environment = self._environment()
        server = kept_server(environment) if self._warm and self._fork else None
        self._own_server = server is None
        if server is not None:
            return server
        return Server(environment) if self._fork else NewProcesses()

    def _environment(self) -> dict[str, str]:
        merged = {**os.environ, **self._env}
        return {name: value for name, value in merged.items() if value is not None}

    def _start(self, tasks: list[str]) -> None:
        end = time.monotonic() + self.start_deadline
        births = []
        try:
            for task in tasks:
                (read_out, out), (read_err, err) = os.pipe(), os.pipe()
                self._output.read(task, read_out, "stdout")
                self._output.read(task, read_err, "stderr")
                environment = {**self._environment(), TASK: task, "TF_CONFIG": json.dumps(self.tf_config_of(task))}
                request = {"name": task, "environment": environment, "cwd": os.getcwd(), "path": self._path or sys.path}
                births.append(Birth(request, out, err))
            self._server.start(births, self.start_deadline, self._processes)
        finally:
            for birth in births:
                os.close(birth.out)
                os.close(birth.err)
        ready = Running(self, "the start", {task: self._process(task) for task in tasks}, None)
        ready.results(end - time.monotonic())
        serving = [task for task in tasks if task in self._serving]
        if serving:
            self.start(_serve, on=serving).results(end - time.monotonic())

    def _process(self, task: str) -> Process:
        self._check_name(task)
        if task not in self._processes:
            raise BadInput(f"{task} was not started: use the cluster in `with LocalCluster(...) as cluster:`.")
        return self._processes[task]
