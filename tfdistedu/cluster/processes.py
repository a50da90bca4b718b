"""How does a launcher start a process, hold it, and be sure that it is gone?

Two ways, which look the same from here:

    Server          one process that imported TensorFlow, and forks each task (Linux; `tfdistedu.cluster.server`)
    NewProcesses    each task is a new process that imports for itself (everywhere; some seconds a task)

A `Process` is held by a handle on the process itself, not by its number, which may be another's once it is gone.

Cost: on Linux one descriptor a task. Left out: forking on macOS, where it is not safe once TensorFlow is
imported. There and on Windows only the second way exists; it was tested on Linux, by force, and not run there. In it a
task that is stopped when the launcher is killed stays until it goes on.
"""

from __future__ import annotations

import atexit
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
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from tfdistedu.cluster.messages import receive, send
from tfdistedu.errors import DeadlineExceeded, MachineCannot

# Read while TensorFlow is imported: a server that imported it with others is of no use.
READ_AT_IMPORT = (
    "KERAS_BACKEND", "TF_USE_LEGACY_KERAS", "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS",
    "PYTHONHASHSEED", "LD_LIBRARY_PATH", "LD_PRELOAD",
)  # fmt: skip


KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has none; there the other one ends a process as well


def _import_key(environment: dict[str, str]) -> tuple[str | None, ...]:
    default = {"TF_CPP_MIN_LOG_LEVEL": "2"}  # what tfdistedu.quiet sets where it is not set
    return tuple(environment.get(name, default.get(name)) for name in READ_AT_IMPORT)


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


class Server:
    """The launcher's end of a `tfdistedu.cluster.server`: `fork` starts a task.

    Args:
        environment: The server's; what TensorFlow reads while it is imported counts from here.

    """

    def __init__(self, environment: dict[str, str] | None = None):
        environment = dict(os.environ if environment is None else environment)
        self.key = _import_key(environment)
        self.folder = os.path.join(tempfile.gettempdir(), f"tfdistedu-{secrets.token_hex(8)}")
        self._sock, its = socket.socketpair()
        self._lock = threading.Lock()
        self._launcher = os.getpid()
        self._number = 0
        self._ready = False
        paths = [entry or os.getcwd() for entry in sys.path]
        # One thread: OpenBLAS would start more while NumPy is imported. `-P`: the working folder may hold anything.
        environment |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
        words = [
            sys.executable,
            "-P",
            "-m",
            "tfdistedu.cluster.server",
            str(its.fileno()),
            str(os.getpid()),
            self.folder,
        ]
        with its:
            self._process = subprocess.Popen(
                words, env=environment, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def wait_ready(self, deadline: float) -> None:
        """Wait until TensorFlow is imported.

        Args:
            deadline: Seconds.

        Raises:
            DeadlineExceeded: It is not.
            MachineCannot: The import failed; the message shows how.

        """
        if self._ready:
            return
        self._sock.settimeout(deadline)
        try:
            answer, _ = receive(self._sock)
        except TimeoutError:
            raise DeadlineExceeded(f"the server of the cluster did not import TensorFlow in {deadline:g} s.") from None
        finally:
            self._sock.settimeout(None)
        self._check(answer)
        self._ready = True

    def alive(self) -> bool:
        """Tell whether it runs.

        Returns:
            Whether it does.

        """
        return self._launcher == os.getpid() and self._process.poll() is None

    def start(self, births: list[Birth], deadline: float, born: dict[str, Process]) -> None:
        """Fork a task for each birth.

        Args:
            births: What the tasks are given.
            deadline: Seconds to wait until TensorFlow is imported.
            born: Where each task is put, by its name, as soon as there is one.

        """
        self.wait_ready(deadline)
        for birth in births:
            born[birth.request["name"]] = self._fork(birth)

    def _fork(self, birth: Birth) -> Process:
        self._number += 1
        request = {**birth.request, "do": "fork", "folder": os.path.join(self.folder, str(self._number))}
        ours, its = socket.socketpair()
        with its:
            answer, (handle, *_) = self._ask(request, (its.fileno(), birth.out, birth.err))
        pid = answer["pid"]
        return Process(pid, Connection(ours.detach()), request["folder"], lambda: self._status_of(pid), handle)

    def _status_of(self, pid: int) -> int | None:
        try:
            return self._ask({"do": "reap", "pid": pid})[0]["status"]
        except (MachineCannot, OSError):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # the server is gone, and with it its tasks; these are what they started
            return None

    def _ask(self, request: dict[str, Any], descriptors: tuple[int, ...] = ()) -> tuple[dict[str, Any], list[int]]:
        with self._lock:
            try:
                send(self._sock, request, descriptors)
                answer, received = receive(self._sock)
            except OSError:
                answer, received = None, []
            except BaseException:  # Ctrl-C between question and answer: the next answer would be that of this one
                self.stop()
                raise
        self._check(answer)
        return answer, received or [-1]

    def _check(self, answer: dict[str, Any] | None) -> None:
        if answer is None:
            self._process.wait(10)
            self.stop()
            raise MachineCannot(f"the server of the cluster ended with status {self._process.returncode}.")
        if "error" in answer:
            self.stop()
            raise MachineCannot(f"the server of the cluster failed:\n{answer['error']}")

    def stop(self) -> None:
        """End the server, and with it its tasks, and remove its folder."""
        if self._launcher != os.getpid():  # a fork of the launcher: none of its business
            return
        self._process.kill()
        self._process.wait()
        self._sock.close()
        for _ in range(100):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                break
            time.sleep(0.01)  # a task that the kernel is just ending wrote a file in between


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


def can_fork() -> bool:
    """Tell whether tasks can be forked here.

    Returns:
        Whether this is a Linux that has pidfds (5.3 and newer).

    """
    return sys.platform.startswith("linux") and hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")


class _Kept:
    """The server that stays for the next cluster."""

    server: Server | None = None
    lock = threading.Lock()


def kept_server(environment: dict[str, str]) -> Server | None:
    """Return this process's own server, started if need be; it stays until the process ends.

    Args:
        environment: That of the tasks.

    Returns:
        The server, or `None` if the one that runs has imported TensorFlow with other variables.

    """
    with _Kept.lock:
        if _Kept.server is None or not _Kept.server.alive():
            if _Kept.server is not None:
                _Kept.server.stop()
            _Kept.server = Server(environment)
        return _Kept.server if _Kept.server.key == _import_key(environment) else None


@atexit.register
def stop_server() -> None:
    """End the server that stays for the next cluster, if there is one; the end of this process does it too."""
    with _Kept.lock:
        if _Kept.server is not None:
            _Kept.server.stop()
            _Kept.server = None
