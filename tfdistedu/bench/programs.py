"""How are ranks held that are programs of another environment, and cannot be tasks of a `LocalCluster`?

Each rank connects back to a Unix socket in a folder of its own, tells its number, and then answers one request at a
time. So mpirun, which hands stdin to its first rank only, is driven like programs that were started one by one:

    launcher                        rank 0    rank 1    rank 2       python gloo.py ADDRESS RANK N_RANKS, or
       |<------ rank, pid -----------|---------|---------|           mpirun -n 3 python openmpi.py ADDRESS
       |------- a block ------------>|-------->|-------->|
       |<------ seconds, error ------|---------|    ...              a deadline names the ranks that owe an answer

Whatever happens, all are gone at the end, and the folder with them: asked to, then ended, then killed. When the
launcher is killed, each rank sees the line close.

Cost: none between requests; ranks sleep. Left out: Windows, which has neither peer.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tfdistedu.errors import DeadlineExceeded, TfdisteduError


class Programs:
    """Ranks that run as programs, as a context manager.

    Args:
        name: Of the implementation, for messages.
        n_ranks: Number of ranks.
        commands: From the socket's path to the command lines that start them all.
        environment: Variables on top of this process's.
        start_deadline: Seconds that the start may take.

    """

    def __init__(
        self,
        name: str,
        n_ranks: int,
        commands: Callable[[str], list[list[str]]],
        environment: Mapping[str, str] | None = None,
        start_deadline: float = 60.0,
    ):
        self.name, self.n_ranks, self.start_deadline = name, n_ranks, start_deadline
        self._commands, self._environment = commands, dict(environment or {})
        self._processes: list[subprocess.Popen] = []
        self._lines: dict[int, Connection] = {}
        self._handles: dict[int, Any] = {}  # of ranks, also of those that another program started
        self._folder = ""
        self._broken = False

    def __enter__(self) -> Programs:
        # In memory where there is such a place: OpenMPI's segments are files in here, so that none outlives it.
        shared = "/dev/shm"
        self._folder = tempfile.mkdtemp(prefix="tfdistedu-", dir=shared if os.access(shared, os.W_OK) else None)
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def block(self, elements: int, calls: int, deadline: float) -> list[list[float]]:
        """Have all ranks run one block (see `tfdistedu.bench.ranks.block`).

        Args:
            elements: Length of the message, in float32.
            calls: Calls to time.
            deadline: Seconds that the block may take.

        Returns:
            Seconds of each call, by rank.

        Raises:
            TfdisteduError: A rank failed, ended, or had a wrong sum; the message names it.
            DeadlineExceeded: Ranks did not answer; the message names them.

        """
        end = time.monotonic() + deadline
        self._broken = True  # until all have answered: nobody asks ranks politely that hang in a call
        for rank, line in self._lines.items():
            with self._or_ended(rank):
                line.send({"elements": elements, "calls": calls, "deadline": deadline})
        answers: dict[int, list[float]] = {}
        while len(answers) < self.n_ranks:
            waiting = {line: rank for rank, line in self._lines.items() if rank not in answers}
            ready = wait(list(waiting), max(0.0, end - time.monotonic()))
            if not ready:
                raise DeadlineExceeded(f"no answer within {deadline:g} s from {_ranks(waiting.values())}")
            for line in ready:
                rank = waiting[line]
                with self._or_ended(rank):
                    answer = line.recv()
                if "error" in answer:
                    raise TfdisteduError(f"rank {rank}: {answer['error']}")
                answers[rank] = answer["value"]
        self._broken = False
        return [answers[rank] for rank in range(self.n_ranks)]

    def close(self) -> None:
        """End all ranks, by asking, then by force, and remove their folder."""
        if not self._broken and len(self._lines) == self.n_ranks:
            for line in self._lines.values():
                with contextlib.suppress(OSError):
                    line.send(None)
            self._wait_for_the_end(3.0)
        for process in self._processes:
            process.terminate()  # mpirun takes its ranks along, if it can
        self._wait_for_the_end(2.0)
        for handle in self._handles.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it leads a group of its own, and is not reaped yet
            process.wait()
        for line in self._lines.values():
            line.close()
        self._lines, self._handles, self._processes = {}, {}, []
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        address = os.path.join(self._folder, "line")
        end = time.monotonic() + self.start_deadline
        environment = {**os.environ, **self._environment, "TMPDIR": self._folder, "PYTHONUNBUFFERED": "1"}
        environment = {name: text for name, text in environment.items() if not name.startswith("PYTHONPATH")}
        with socket.socket(socket.AF_UNIX) as listener, open(self._log, "wb") as log:
            listener.bind(address)
            listener.listen(self.n_ranks)
            for words in self._commands(address):
                self._processes.append(
                    subprocess.Popen(
                        words, env=environment, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                        start_new_session=True,
                    )
                )  # fmt: skip
            while len(self._lines) < self.n_ranks:
                if not wait([listener], 0.05):
                    self._check_the_start(end)
                    continue
                connection = Connection(listener.accept()[0].detach())
                hello = connection.recv() if connection.poll(max(0.0, end - time.monotonic())) else {}
                self._lines[hello["rank"]] = connection
                if hasattr(os, "pidfd_open"):
                    self._handles[hello["rank"]] = os.pidfd_open(hello["pid"])

    def _check_the_start(self, end: float) -> None:
        ended = [process.returncode for process in self._processes if process.poll() is not None]
        if ended:
            raise TfdisteduError(f"it does not start (status {ended[0]}): {self._last_words()}")
        if time.monotonic() > end:
            missing = _ranks(set(range(self.n_ranks)) - set(self._lines))
            raise DeadlineExceeded(f"{missing} did not connect within {self.start_deadline:g} s: {self._last_words()}")

    @property
    def _log(self) -> Path:
        return Path(self._folder) / "log"

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines()]
        told = [line for line in lines if line.strip("-") and not line.startswith(("File ", "Traceback", "^"))]
        errors = [line for line in told if "Error" in line]
        return (errors or told or ["it wrote nothing"])[-1][:300]

    @contextlib.contextmanager
    def _or_ended(self, rank: int) -> Any:
        try:
            yield
        except (EOFError, OSError):
            raise TfdisteduError(f"rank {rank} ended before it answered: {self._last_words()}") from None

    def _wait_for_the_end(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))


def _ranks(numbers: Iterable[int]) -> str:
    numbers = sorted(numbers)
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
