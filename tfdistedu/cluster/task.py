"""What does a task do from its birth on?

It takes on what it was given (environment, folder, paths), says that it is ready, and then answers calls, one at a
time, until its line is closed:

    launcher --function, arguments--> task      runs it in its main thread
    launcher <--value or traceback--- task

What a call leaves behind (a strategy kept in a module, TensorFlow awake with its devices) the next one finds. A script
is the last call: the task ends as Python ends after it, with its exit status.

On SIGUSR1 a task writes the stacks of all its threads to descriptor 2, whatever it is waiting for.

Cost: none after the start. Left out: two calls at once.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import runpy
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

TASK = "TFDISTEDU_TASK"  # in each task's environment: its name


def this_task() -> str | None:
    """Say which task of a `LocalCluster`, or of `tfdistedu run`, this process is.

    Returns:
        Its name, such as `"worker:1"`, or `None` outside of one.

    Example:
        >>> this_task() is None
        True

    """
    return os.environ.get(TASK)


def become(request: dict[str, Any]) -> None:
    """Take on the environment, the folder and the paths of a task.

    Args:
        request: `environment`, all of it; `cwd`; `path`, for `sys.path`; `folder`, its own temporary one, made here.

    """
    if hasattr(os, "setsid"):
        with contextlib.suppress(PermissionError):  # it leads a group already
            os.setsid()  # Ctrl-C goes to the launcher alone, and what a task starts can be ended with it
    os.environ.clear()
    os.environ.update(request["environment"])
    os.makedirs(request["folder"], 0o700, exist_ok=True)
    os.environ["TMPDIR"] = request["folder"]  # AutoGraph leaves a file there for each function that it traces
    tempfile.tempdir = request["folder"]
    os.chdir(request["cwd"])
    sys.path[:] = request["path"]
    sys.argv = [""]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    faulthandler.enable(file=2)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # forks of one process would all draw the same numbers


def live(control: Connection) -> int:
    """Answer calls until the line is closed.

    Args:
        control: The line to the launcher.

    Returns:
        The exit status.

    """
    from tfdistedu.cluster import sending

    control.send_bytes(sending.dumps({"ready": os.getpid()}))
    while True:
        try:
            call = sending.loads(control.recv_bytes())
        except (EOFError, OSError):
            return 0
        except BaseException:
            control.send_bytes(sending.dumps({"error": _in_one_line(), "traceback": traceback.format_exc()}))
            continue
        if "script" in call:
            control.close()
            return run_script(call["script"], call["arguments"])
        control.send_bytes(_answer(call))


def _answer(call: dict[str, Any]) -> bytes:
    from tfdistedu.cluster import sending

    try:
        with sending.standing_in(call["stand_in"]):
            value = call["function"](*call["arguments"], **call["keywords"])
        sys.stdout.flush()
        return sending.dump_result({"value": value})
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next or error.__traceback__  # without this function
        told = {"error": _in_one_line(), "traceback": "".join(traceback.format_exception(error))}
    return sending.dumps(told)


def _in_one_line() -> str:
    kind, error, _ = sys.exc_info()
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("File ", "in user code:", "Traceback"))]
    return f"{kind.__name__}: {told[0]}" if told else kind.__name__


def run_script(script: str, arguments: list[str]) -> int:
    """Run a script as `python script` would.

    Args:
        script: Its path.
        arguments: `sys.argv[1:]`.

    Returns:
        The exit status that Python would end with.

    """
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> int:
    """Be a task that was started as a new process: connect back, and live.

    The request comes as the first line of stdin, which then stays open: its end is the launcher's.

    Returns:
        The exit status.

    """
    request = json.loads(sys.stdin.buffer.readline())

    def watch_the_launcher() -> None:
        sys.stdin.buffer.read()
        shutil.rmtree(request["folder"], ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(Path(request["folder"]).parent)  # the last one can
        os._exit(1)

    become(request)
    threading.Thread(target=watch_the_launcher, daemon=True).start()
    from tfdistedu.quiet import import_tensorflow

    import_tensorflow()
    line = socket.create_connection(tuple(request["address"]))
    line.sendall(request["key"].encode())
    return live(Connection(line.detach()))


if __name__ == "__main__":
    sys.exit(main())
