"""How does a task start where it cannot be forked?

Each is a new process that imports TensorFlow for itself, and calls back when it has, with a key that only it was told:

    launcher --environment, key--> stdin of the task        its end is the launcher's: then the task ends itself
    launcher <--"here I am", key-- task                     from then on the same line as a forked task's

Cost: some seconds a task, all at once. Left out: a task that is *stopped* when the launcher is killed stays until it
goes on. For macOS and Windows; it was tested on Linux, by force, and not run there.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from typing import Any

from tfdistedu.cluster.process import Birth, Process
from tfdistedu.errors import DeadlineExceeded, MachineCannot


class NewProcesses:
    """Start each task as a new process that imports TensorFlow for itself, and calls back when it has."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tfdistedu-")
        self._number = 0

    def alive(self) -> bool:
        """Tell whether it can start tasks.

        Returns:
            True: there is nothing that could end.

        """
        return True

    def start(self, births: list[Birth], deadline: float, born: dict[str, Process]) -> None:
        """Start a task for each birth, all at once.

        Args:
            births: What the tasks are given.
            deadline: Seconds to wait until all have called back.
            born: Where each task is put, by its name, when it has.

        Raises:
            DeadlineExceeded: Some have not; the message names them.
            MachineCannot: One ended before it called.

        """
        end = time.monotonic() + deadline
        waiting: dict[str, tuple[subprocess.Popen, dict[str, Any]]] = {}
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(0.1)
            try:
                for birth in births:
                    self._spawn(birth, listener.getsockname(), waiting)
                while waiting:
                    with contextlib.suppress(TimeoutError):
                        line, _ = listener.accept()
                        _recognise(line, waiting, born)
                    for process, request in waiting.values():
                        if process.poll() is not None:
                            how = f"ended with status {process.poll()} before it was ready"
                            raise MachineCannot(f"{request['name']} {how}; above is what it wrote.")
                    if waiting and time.monotonic() > end:
                        names = ", ".join(request["name"] for _, request in waiting.values())
                        raise DeadlineExceeded(f"{names} did not import TensorFlow within {deadline:g} s.")
            except BaseException:
                for process, _ in waiting.values():
                    process.kill()
                    _end_group(process)
                raise

    def _spawn(self, birth: Birth, address: tuple[str, int], waiting: dict) -> None:
        self._number += 1
        key = secrets.token_hex(16)  # only our own tasks may call
        folder = os.path.join(self.folder, str(self._number))
        request = {**birth.request, "folder": folder, "address": address, "key": key}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tfdistedu.cluster.task"],
            env={**request["environment"], "PYTHONPATH": os.pathsep.join(filter(None, request["path"]))},
            stdin=subprocess.PIPE, stdout=birth.out, stderr=birth.err, start_new_session=True,
        )  # fmt: skip
        waiting[key] = process, request
        with contextlib.suppress(BrokenPipeError):  # it ended already, which is seen below
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()

    def stop(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _recognise(line: socket.socket, waiting: dict, born: dict[str, Process]) -> None:
    """Take a caller for the task whose key it says; hang up on anybody else."""
    line.settimeout(2.0)
    try:
        key = line.recv(32, socket.MSG_WAITALL).decode(errors="replace")
    except OSError:
        key = ""
    if key not in waiting:
        line.close()
        return
    line.settimeout(None)
    process, request = waiting.pop(key)
    control = Connection(line.detach())
    born[request["name"]] = Process(process.pid, control, request["folder"], lambda: _end_group(process), process)


def _end_group(process: subprocess.Popen) -> int:
    with contextlib.suppress(OSError):
        process.stdin.close()
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()
