"""A fresh process that holds TensorFlow, in a fifth of a second: fork from one that imported it and never used it.

`import tensorflow` costs 2.4 s. Many tests need a process of their own: another number of virtual CPUs, a program that
is meant to crash, a recipe in a place where tfdistedu cannot be imported. One server imports once, stays asleep (one
thread), and forks a child for each request. POSIX only, as the test-suite is.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Finished:
    """How a process ended: `status` (negative: the signal that ended it), and what it wrote."""

    status: int
    stdout: str
    stderr: str


class FreshProcesses:
    """A context manager whose `run` starts a script in a fresh process that has TensorFlow imported."""

    def __enter__(self) -> FreshProcesses:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.fresh_process"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lock = threading.Lock()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stdin.close()
        self._server.wait(timeout=30)
        self._server.stdout.close()

    def run(
        self,
        script: str | Path,
        arguments: tuple[str, ...] = (),
        cwd: str | Path | None = None,
        environment: dict[str, str] | None = None,
        block: tuple[str, ...] = (),
        timeout: float = 120.0,
    ) -> Finished:
        """Run a script (a path, or Python code) and wait for its end.

        Args:
            script: A path, or the text of a program (told apart by a line break or a missing file).
            arguments: `sys.argv[1:]`.
            cwd: Its working folder; a new empty one if `None`.
            environment: Variables to set on top of this process's.
            block: Modules that cannot be imported there, such as `("tfdistedu",)`.
            timeout: Seconds after which it is killed, and an error is raised that shows what it wrote.

        """
        with tempfile.TemporaryDirectory() as folder:
            path = script if isinstance(script, Path) else Path(folder) / "script.py"
            if not isinstance(script, Path):
                path.write_text(script, encoding="utf-8")
            work = Path(cwd) if cwd else Path(folder) / "work"
            work.mkdir(exist_ok=True)
            request = {
                "script": str(path),
                "arguments": list(arguments),
                "cwd": str(work),
                "environment": environment or {},
                "block": list(block),
                "timeout": timeout,
                "temporary": str(Path(folder)),
                "stdout": str(Path(folder) / "stdout"),
                "stderr": str(Path(folder) / "stderr"),
            }
            with self._lock:
                self._server.stdin.write(json.dumps(request) + "\n")
                self._server.stdin.flush()
                answer = self._server.stdout.readline()
            if not answer:
                raise RuntimeError(f"the server of fresh processes ended with status {self._server.wait(5)}")
            read = [Path(request[name]).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr")]
            finished = Finished(json.loads(answer)["status"], *read)
            if finished.status == -signal.SIGALRM:
                raise TimeoutError(f"{path.name} did not end within {timeout} s; it wrote:\n{read[0]}\n{read[1]}")
            return finished


class _Blocked:
    """A finder that refuses some modules, as if they were not installed."""

    def __init__(self, names: list[str]):
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse a blocked module."""
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r} (blocked by the test)", name=name)


def _child(request: dict) -> int:
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    sys.stdin = os.fdopen(0, closefd=False)
    tempfile.tempdir = os.environ["TMPDIR"] = request["temporary"]  # AutoGraph's files go with the folder
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    signal.alarm(int(request["timeout"]) + 1)  # the default action of SIGALRM ends the process
    sys.argv = [request["script"], *request["arguments"]]
    sys.path[0] = str(Path(request["script"]).parent)
    if request["block"]:
        sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
        for name in [name for name in sys.modules if name.split(".")[0] in request["block"]]:
            del sys.modules[name]
        sys.meta_path.insert(0, _Blocked(request["block"]))
    try:
        runpy.run_path(request["script"], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _serve() -> None:
    from tfdistedu.quiet import import_tensorflow, is_awake

    import_tensorflow()
    for line in sys.stdin:
        request = json.loads(line)
        assert not is_awake(), "the server of fresh processes must never use TensorFlow"
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = _child(request)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, ended = os.waitpid(pid, 0)
        status = os.waitstatus_to_exitcode(ended)
        sys.stdout.write(json.dumps({"status": status}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
