"""How does a launcher start a server, and have it fork?

    Server          one process that imported TensorFlow (`tfdistedu.cluster.server`): `start` has it fork the tasks
    kept_server     the one that stays for the next cluster, until this process ends

The folder of a server is named here, so that either of the two can remove it, whichever is left.

Cost: one import of TensorFlow, some 2.5 s and 600 MB. Left out: systems without pidfds, and macOS, where forking is not
safe once TensorFlow is imported: there `tfdistedu.cluster.new_processes` does it.
"""

from __future__ import annotations

import atexit
import contextlib
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
from multiprocessing.connection import Connection
from typing import Any

from tfdistedu.cluster.messages import receive, send
from tfdistedu.cluster.process import Birth, Process
from tfdistedu.errors import DeadlineExceeded, MachineCannot

# Read while TensorFlow is imported: a server that imported it with others is of no use.
READ_AT_IMPORT = (
    "KERAS_BACKEND", "TF_USE_LEGACY_KERAS", "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS",
    "PYTHONHASHSEED", "LD_LIBRARY_PATH", "LD_PRELOAD",
)  # fmt: skip


def _import_key(environment: dict[str, str]) -> tuple[str | None, ...]:
    # What tfdistedu.quiet and Keras set, while they are imported, where it is not set.
    default = {"TF_CPP_MIN_LOG_LEVEL": "2", "KERAS_BACKEND": "tensorflow"}
    return tuple(environment.get(name, default.get(name)) for name in READ_AT_IMPORT)


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
