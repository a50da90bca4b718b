"""How does a process that holds TensorFlow start in a hundredth of a second?

One process, the *server*, imports TensorFlow and never uses it: so it has one thread, and may fork. A fork holds
TensorFlow at once, asleep: each task still chooses its own devices, environment and descriptors.

    launcher  --fork me worker:1, with these pipes-->  server (TensorFlow imported, asleep, one thread)
       |                                                 |fork         |fork
       |<========== calls and results =============> worker:0       worker:1

Nobody outlives whom they belong to, whoever is killed, and with SIGKILL:

    launcher dies   the server sees it (a pidfd: no descriptor that a stranger could hold open), kills and reaps its
                    tasks, removes the temporary folder, ends
    server dies     the kernel kills each task (PR_SET_PDEATHSIG), a stopped one too; the launcher removes the folder

The launcher asks two things, over a pair of Unix sockets that have no name: `fork` and `reap`. Nothing is sent unasked.

Cost: one import (some 2.5 s) for any number of tasks; some 10 ms a task. Linux only: elsewhere each task is a new
process that imports for itself (`tfdistedu.cluster.new_processes`). Left out: several launchers on one server.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import sys
import traceback
from typing import Any

from tfdistedu.cluster.messages import receive, send

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(yes: bool = True) -> None:
    """Ask the kernel to kill this process when the thread that forked it ends.

    Args:
        yes: Whether to ask, or to take it back.

    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if yes else 0)


def serve(sock: socket.socket, launcher: int, folder: str, tasks: set[int]) -> tuple[dict[str, Any], list[int]] | None:
    """Fork a task for each request, until the launcher goes.

    Args:
        sock: The server's end of the pair.
        launcher: The process id of the launcher, which is this process's parent.
        folder: The temporary folder to make; each task has a part of it.
        tasks: The process ids of the tasks that are not reaped yet; kept here.

    Returns:
        In a task: its request and its descriptors. In the server: `None`, when all is over.

    """
    from tfdistedu.quiet import import_tensorflow, is_awake

    # Step 1: import once. Until it is done, the kernel ends this process with its launcher, and there is no folder yet.
    die_with_parent()
    import_tensorflow()
    # Step 2: watch the launcher. Asking for the parent afterwards closes the gap in which it may have died.
    watch = os.pidfd_open(launcher)
    os.mkdir(folder, 0o700)
    die_with_parent(False)
    if os.getppid() == launcher:
        send(sock, {"ready": os.getpid()})
    while os.getppid() == launcher:
        readable, _, _ = select.select([sock, watch], [], [])
        request, descriptors = receive(sock) if watch not in readable else (None, [])
        if request is None:
            break
        # Step 3: fork. Forking beside another thread may copy a lock that nobody will ever release.
        if request["do"] == "fork":
            n_threads = len(os.listdir("/proc/self/task"))
            assert n_threads == 1, f"the server must have one thread to fork, not {n_threads}"
            assert not is_awake(), "the server must never use TensorFlow"
            server = os.getpid()
            pid = os.fork()
            if pid == 0:
                die_with_parent()
                if os.getppid() != server:  # it died before the kernel was asked
                    os._exit(1)
                sock.close()
                os.close(watch)
                return request, descriptors
            tasks.add(pid)
            handle = os.pidfd_open(pid)  # a handle on this process, not on a number that may be another's tomorrow
            send(sock, {"pid": pid}, (handle,))
            descriptors.append(handle)
        # Step 4: reap. What a task started goes with it: it is in the task's group, whose number is still held.
        elif request["do"] == "reap":
            send(sock, {"status": _reap(request["pid"])})
            tasks.discard(request["pid"])
        for descriptor in descriptors:
            os.close(descriptor)
    return None


def _end(tasks: set[int], folder: str) -> None:
    """End the server's tasks, and what they started; then remove what they wrote."""
    for pid in tasks:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in tasks:
        _reap(pid)
    shutil.rmtree(folder, ignore_errors=True)


def _reap(pid: int) -> int:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(arguments: list[str]) -> int:
    """Be the server; a fork of it comes back as a task.

    Args:
        arguments: The socket's descriptor, the launcher's process id, the folder.

    Returns:
        The exit status, of the server or of the task.

    """
    descriptor, launcher, folder = arguments
    sock = socket.socket(fileno=int(descriptor))
    server, tasks, error = os.getpid(), set(), ""
    try:
        born = serve(sock, int(launcher), folder, tasks)
    except BaseException:
        if os.getpid() != server:
            raise
        born, error = None, traceback.format_exc()  # also a launcher that died between its question and the answer
    if born is None:
        _end(tasks, folder)
        with contextlib.suppress(OSError):
            send(sock, {"error": error}) if error else None
        os._exit(1 if error else 0)  # no farewell of TensorFlow's
    from tfdistedu.cluster.task import become, live

    request, (control, out, err) = born
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    become(request)
    from multiprocessing.connection import Connection

    return live(Connection(control))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
