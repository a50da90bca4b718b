"""Who is missing when a training on several workers does not start?

TensorFlow waits for a worker that never comes without a word. So before it is woken, all tasks meet at the address of
the first one (the leader), which TensorFlow will use a moment later:

    worker:1 --"worker:1, and this is my cluster"--> worker:0     the leader listens, until all have come
    worker:2 --(never comes)                         worker:0     or the deadline passes
    worker:1 <--"go", or "worker:2 is missing"------ worker:0     each fails with the name, or all go on

"Go" is said when the leader's TensorFlow listens: who came a moment before would be refused, and TensorFlow tries again
only after a second. While it waits for the others, TensorFlow lets no other Python run in the leader; so a forked
helper says it.

The leader also sees when a task was given another cluster than its own: a TF_CONFIG that was mistyped on one machine.

Cost: one connection a task, some milliseconds. Left out: whether every task reaches every other (only the leader is
asked for), and tasks that end after the meeting; for those each collective has a timeout.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable

from tfdistedu.cluster.config.addresses import split
from tfdistedu.errors import BadInput, DeadlineExceeded, TfdisteduError

_LINE = 65536


def meet(tasks: dict[str, str], task: str, deadline: float) -> Callable[[], None]:
    """Wait until all tasks have come.

    Args:
        tasks: The address of each task that keeps step, by its name, the leader first.
        task: This task's name.
        deadline: Seconds to wait for all of them.

    Returns:
        A function to call when TensorFlow is up, or will not be: it ends the helper that says "go".

    Raises:
        DeadlineExceeded: Some did not come; the message names them, on each task.
        TfdisteduError: A task has another cluster in its TF_CONFIG.
        BadInput: This task is none of them, or its address is in use.

    """
    if task not in tasks:
        raise BadInput(f"TF_CONFIG says that this is {task}, and its cluster has {', '.join(tasks)}.")
    leader = next(iter(tasks))
    if len(tasks) == 1:
        return _nothing
    if task == leader:
        return _lead(tasks, leader, deadline)
    _follow(tasks, leader, task, deadline)
    return _nothing


def _lead(tasks: dict[str, str], leader: str, deadline: float) -> Callable[[], None]:
    end = time.monotonic() + deadline
    come: dict[str, socket.socket] = {}
    wrong = ""
    try:
        listener = socket.create_server(("", split(tasks[leader]).port), reuse_port=False)
    except OSError as error:
        raise BadInput(f"{leader} cannot listen at {tasks[leader]} ({error.strerror}): who else uses it?") from None
    with contextlib.ExitStack() as lines:
        lines.enter_context(listener)
        while len(come) < len(tasks) - 1 and not wrong and (left := end - time.monotonic()) > 0:
            listener.settimeout(left)
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # a stranger, or nobody
                line, _ = listener.accept()
                lines.callback(line.close)
                line.settimeout(2.0)
                said = json.loads(_read_line(line))
                if said["tasks"] != tasks:
                    wrong = f"{said['task']} was given another cluster ({said['tasks']}) than {leader} ({tasks})."
                if said["task"] in tasks:
                    come[said["task"]] = line
        missing = [name for name in tasks if name not in come and name != leader]
        answer = wrong or (_missing(missing, tasks, deadline) if missing else "")
        ended = _nothing
        if not answer and hasattr(os, "fork"):
            listener.close()  # before the fork: as long as the helper held it, too, TensorFlow could not listen there
            ended = _go_when_it_listens(list(come.values()), tasks[leader], deadline)
        else:
            for line in come.values():
                _say(line, wrong, answer)
    _judge(wrong, answer)
    return ended


def _go_when_it_listens(lines: list[socket.socket], address: str, deadline: float) -> Callable[[], None]:
    """Fork a helper that says "go" when TensorFlow listens here; this process is deaf until all have come."""
    parent, helper = os.getpid(), os.fork()
    if helper:
        return lambda: _end(helper)
    try:
        end = time.monotonic() + deadline
        while time.monotonic() < end and os.getppid() == parent:
            with contextlib.suppress(OSError):
                socket.create_connection(split(address), timeout=1.0).close()
                for line in lines:
                    _say(line, "", "")
                break
            time.sleep(0.002)
    finally:
        os._exit(0)  # whatever it is, it must not run on as a second leader


def _end(helper: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(helper, signal.SIGKILL)
        os.waitpid(helper, 0)


def _nothing() -> None:
    """There is no helper to end."""


def _say(line: socket.socket, wrong: str, answer: str) -> None:
    with contextlib.suppress(OSError):  # it is gone, and needs to hear nothing
        line.sendall(json.dumps({"wrong": wrong, "answer": answer}).encode() + b"\n")


def _follow(tasks: dict[str, str], leader: str, task: str, deadline: float) -> None:
    # The leader began to wait at another moment: it is given some seconds more to say who is missing.
    end = time.monotonic() + deadline
    answer = None
    while True:
        with (
            contextlib.suppress(OSError, ValueError),  # not there yet, or somebody else is
            socket.create_connection(split(tasks[leader]), timeout=2.0) as line,
        ):
            line.sendall(json.dumps({"task": task, "tasks": tasks}).encode() + b"\n")
            line.settimeout(max(0.1, end - time.monotonic()) + deadline)
            answer = json.loads(_read_line(line))
            break
        if time.monotonic() > end:
            raise DeadlineExceeded(_missing([leader], tasks, deadline))
        time.sleep(0.05)
    _judge(answer["wrong"], answer["answer"])


def _judge(wrong: str, answer: str) -> None:
    if wrong:
        raise TfdisteduError(f"{wrong} Give all tasks the same cluster in TF_CONFIG; only `task` differs.")
    if answer:
        raise DeadlineExceeded(answer)


def _missing(names: list[str], tasks: dict[str, str], deadline: float) -> str:
    who = ", ".join(f"{name} ({tasks[name]})" for name in names)
    return (
        f"the training cannot start: {who} did not come within {deadline:g} s. Is it started, with this TF_CONFIG, and "
        f"can the machine of {next(iter(tasks))} be reached from there?"
    )


def _read_line(line: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n") and len(data) < _LINE:
        part = line.recv(_LINE)
        if not part:
            break
        data += part
    return data
