"""How does any training script become a cluster on this machine?

    tfdistedu run --workers 2 train.py          what `torchrun` is to PyTorch

Each task runs the whole script, as `python train.py` would, with a TF_CONFIG of its own. TensorFlow is imported once
and forked, so the first line of the script finds it imported already: what TensorFlow and Keras read while they are
imported (`READ_AT_IMPORT` in `tfdistedu.cluster.forks`) counts from the environment of `tfdistedu run`, and comes
too late when the script sets it. Threads, devices and TF_CONFIG are read later, and may be set in the script.

    all end with 0                                   0
    one fails     -> the others have 2 s to fail, too, and are killed     its status (128 + n for signal n)
    the chief of a cluster with ps ends              the others are killed; the chief's status
    --restarts K  -> the whole job starts again, up to K times, to resume from its checkpoint
    the deadline  -> stacks of all that run, then all are killed          124

All start again and not only the one that failed: training that keeps step cannot take a new process into its middle.

Cost: one import, then 10 ms a task. Left out: several machines (`--hosts` sets TF_CONFIG for this one, and no more).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path

from tfdistedu.cluster import sending
from tfdistedu.cluster.local import LocalCluster
from tfdistedu.cluster.process import Process
from tfdistedu.errors import BadInput, DeadlineExceeded

GRACE = 2.0  # seconds in which the others may fail and say so


class Job(LocalCluster):
    """A cluster whose tasks run one script each: nothing serves unless the script does."""

    def __init__(self, workers: int, ps: int, chief: bool, evaluator: bool, start_deadline: float = 120.0):
        super().__init__(
            workers, ps, chief or ps > 0, evaluator, start_deadline=start_deadline, warm=False, echo=True
        )  # fmt: skip
        self._serving = []
        self.with_ps = ps > 0
        if not sys.flags.safe_path:
            self._path = sys.path[1:]  # the first is where `tfdistedu` itself lies; the script's folder takes its place


def run_script(
    job: Job,
    script: str,
    arguments: list[str],
    restarts: int = 0,
    deadline: float | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> int:
    """Run a script on each task of a job, until all have ended.

    Args:
        job: A job that has not been started.
        script: The script's path.
        arguments: What the script finds in `sys.argv[1:]`.
        restarts: How often the whole job starts again when a task fails.
        deadline: Seconds for all of it; `None`: no end.
        say: Called with a line when something happens.

    Returns:
        The exit status, that of the first task that failed.

    Raises:
        DeadlineExceeded: The deadline passed; the message names the tasks that still ran, the output has their stacks.
        BadInput: There is no such script.

    """
    if not Path(script).is_file():
        raise BadInput(f"run: there is no file {script}.")
    end = None if deadline is None else time.monotonic() + deadline
    with job:
        for attempt in range(restarts + 1):
            if attempt:
                say(f"the job starts again ({attempt} of {restarts})")
                job.restart()
            status = _run_once(job, {"script": script, "arguments": arguments}, end, say)
            if status == 0:
                break
    return status


def _run_once(job: Job, call: dict, end: float | None, say: Callable[[str], None]) -> int:
    message = sending.dumps(call)
    for task in job.tasks:
        job._process(task).control.send_bytes(message)
    running = {task: job._process(task) for task in job.tasks}
    failed = None
    # Step 1: wait for the first failure, for the coordinator, or for all but the evaluator, which may never end.
    while any(not task.startswith("evaluator") for task in running):
        for task in _take_ended(job, running, end):
            process = job._process(task)
            if process.status != 0:
                say(f"{task} {process.how_it_ended()}")
                failed = failed or process
            elif job.with_ps and task == "chief:0":
                say("the chief has ended, so ps, workers and evaluator are ended")
                job.kill(*running)
                return 0
        if failed is not None:
            break
    # Step 2: the others. They may end by themselves, which shows what they have to say.
    grace_ends = time.monotonic() + GRACE
    while running and time.monotonic() < grace_ends:
        for task in _take_ended(job, running, grace_ends, raises=False):
            if job._process(task).status != 0:
                say(f"{task} {job._process(task).how_it_ended()}")
                failed = failed or job._process(task)
    if running:
        say(f"ended with it: {', '.join(running)}")
        job.kill(*running)
    return 0 if failed is None else _exit_status(failed)


def _take_ended(job: Job, running: dict[str, Process], end: float | None, raises: bool = True) -> list[str]:
    """Wait until some tasks have ended, and take them out."""
    while True:
        ended = [task for task, process in running.items() if process.ended()]
        for task in ended:
            del running[task]
        left = None if end is None else end - time.monotonic()
        if ended or not running or (left is not None and left <= 0 and not raises):
            return ended
        if left is not None and left <= 0:
            job.stacks(*running)  # the tasks write them, so they are shown
            raise DeadlineExceeded(f"the deadline has passed, and {', '.join(running)} still ran.")
        sentinels = [process.sentinel for process in running.values() if process.sentinel is not None]
        if sentinels:
            wait(sentinels, left)
        else:
            time.sleep(0.05)


def _exit_status(process: Process) -> int:
    if process.status is None:
        return 1
    return process.status if process.status >= 0 else 128 - process.status


def config_for_hosts(hosts: list[str], port: int = 2222) -> dict[str, list[str]]:
    """Give each of some machines one worker.

    Args:
        hosts: Their names or addresses; one may bring its own port, `"a:2223"`, `"[::1]:2223"`.
        port: The port of all others.

    Returns:
        The cluster of TF_CONFIG.

    Raises:
        BadInput: No host, one twice, or a port out of range.

    Example:
        >>> config_for_hosts(["a", "b:2223"])
        {'worker': ['a:2222', 'b:2223']}

    """
    if not 0 < port < 65536:
        raise BadInput(f"--port {port}: a port is a number from 1 to 65535.")
    addresses = []
    for host in (host.strip() for host in hosts):
        if not host:
            raise BadInput(f"--hosts {','.join(hosts)}: a name is empty.")
        has_port = host.rpartition("]")[2].count(":") == 1
        bare = ":" in host and not host.startswith("[") and host.count(":") > 1  # an IPv6 address
        addresses.append(host if has_port else f"[{host}]:{port}" if bare else f"{host}:{port}")
    if len(set(addresses)) < len(addresses):
        raise BadInput(f"--hosts {','.join(hosts)}: an address is there twice; each worker has one of its own.")
    return {"worker": addresses}


def become_worker(script: str, arguments: list[str], config: str) -> None:
    """Turn this process into the worker of this machine: Python, the script, its TF_CONFIG. It does not return.

    Args:
        script: The script's path.
        arguments: `sys.argv[1:]` of it.
        config: The TF_CONFIG.

    """
    if not Path(script).is_file():
        raise BadInput(f"run: there is no file {script}.")
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {**os.environ, "TF_CONFIG": config}
    os.execve(sys.executable, [sys.executable, script, *arguments], environment)
