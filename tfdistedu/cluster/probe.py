"""Does a task answer, seen from here, and is this task's own port free?

    look up the name -> connect -> say the first words of HTTP/2 -> wait for TensorFlow's answer
        |                  |                                           |
     unresolved     refused / no-answer                        silent (paused?) / other (no gRPC) / answers

A connection alone proves little: the kernel accepts it for a process that is stopped, too. All probes run at once,
each in a thread that nobody waits for beyond the deadline, because a name look-up cannot be interrupted. Cost: at most
one deadline and a bit. Left out: the edges between *other* tasks; run the doctor as each task.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfdistedu.cluster.config.addresses import split
from tfdistedu.cluster.config.model import Task

# The client's side of HTTP/2: a fixed greeting, and an empty frame of settings (length 0, type 4).
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_MOST_AT_ONCE = 64


@dataclass(frozen=True)
class Edge:
    """The way from this process to another task.

    Attributes:
        task: The other one.
        status: "answers", "unresolved", "refused", "no-answer", "silent" or "other".
        detail: The system's word for it, if there is one.

    """

    task: Task
    status: str
    detail: str = ""


def probe(tasks: Sequence[Task], deadline: float = 1.0) -> list[Edge]:
    """Dial some tasks, all at once.

    Args:
        tasks: Whom to dial.
        deadline: Seconds for each; more than 64 tasks go in several rounds.

    Returns:
        One edge a task, in their order.

    """
    edges: list[Edge] = []
    for start in range(0, len(tasks), _MOST_AT_ONCE):
        some = tasks[start : start + _MOST_AT_ONCE]
        found: dict[int, Edge] = {}

        def ask(number: int, task: Task, found: dict[int, Edge] = found) -> None:
            found[number] = Edge(task, *dial(task.address, deadline))

        threads = [threading.Thread(target=ask, args=(i, task), daemon=True) for i, task in enumerate(some)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + deadline + 0.2
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        late = "the name was not looked up in time"
        edges += [found.get(i, Edge(task, "unresolved", late)) for i, task in enumerate(some)]
    return edges


def dial(address: str, deadline: float) -> tuple[str, str]:
    """Dial one address.

    Args:
        address: Such as "a:2222".
        deadline: Seconds for all of it but the look-up of the name.

    Returns:
        Status and detail, as an `Edge` has them.

    """
    host, port = split(address)
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return "unresolved", str(getattr(error, "strerror", None) or error)
    end = time.monotonic() + deadline
    worst = ("no-answer", "")
    for family, kind, protocol, _, place in places:
        try:
            with socket.socket(family, kind, protocol) as line:
                line.settimeout(max(0.05, end - time.monotonic()))
                line.connect(place)
                line.settimeout(max(0.05, end - time.monotonic()))
                return _greet(line)
        except ConnectionRefusedError as error:
            worst = ("refused", error.strerror.lower())
        except TimeoutError:
            worst = ("no-answer", f"nothing within {deadline:g} s")
        except OSError as error:
            worst = ("no-answer", (error.strerror or str(error)).lower())
    return worst


def _greet(line: socket.socket) -> tuple[str, str]:
    """Say hello in HTTP/2; gRPC answers with its settings."""
    try:
        line.sendall(_GREETING)
        answer = b""
        while len(answer) < 4:
            got = line.recv(64)
            if not got:
                break
            answer += got
    except TimeoutError:
        return "silent", ""
    except OSError:
        return "other", "it hung up"
    return ("answers", "") if answer[3:4] == b"\x04" else ("other", "it speaks another protocol")


def own_port(port: int) -> tuple[bool, str]:
    """Tell whether TensorFlow could listen at a port of this machine, on all interfaces as it does.

    Args:
        port: From 1 to 65535.

    Returns:
        Whether it is free, and the system's word for it if not.

    """
    for family, any_address in ((socket.AF_INET6, "::"), (socket.AF_INET, "")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as try_it:
                # As TensorFlow does: a port that only rests (TIME_WAIT) is free, one at which somebody listens is not.
                if os.name == "posix":
                    try_it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try_it.bind((any_address, port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                continue  # no IPv6 on this machine
            return False, (error.strerror or str(error)).lower()
    return True, ""


def within(seconds: float, function: Callable, *arguments: object) -> object:
    """Call a function, and wait for it no longer than this; a look-up of a name cannot be interrupted.

    Args:
        seconds: How long.
        function: What to call, in a thread that is left behind if it is late.
        *arguments: Its arguments.

    Returns:
        What it gave, or `None` if it was late.

    """
    given: list[object] = []
    thread = threading.Thread(target=lambda: given.append(function(*arguments)), daemon=True)
    thread.start()
    thread.join(seconds)
    return given[0] if given else None


def is_here(host: str) -> bool | None:
    """Tell whether a host is this machine.

    Args:
        host: A name or an IP address.

    Returns:
        Whether one of its addresses is an interface of this machine; `None` if the name leads nowhere.

    """
    try:
        places = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    for family, kind, protocol, _, place in places:
        try:
            with socket.socket(family, kind, protocol) as try_it:
                try_it.bind(place)
                return True
        except OSError:
            continue
    return False


def listener(port: int) -> tuple[int, str, str] | None:
    """Find the process that listens at a port of this machine (Linux, processes of the same user).

    Args:
        port: From 1 to 65535.

    Returns:
        Its id, its command line and its TF_CONFIG; `None` if it cannot be seen.

    """
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        cells = (row.split() for row in rows)
        inodes |= {cell[9] for cell in cells if cell[3] == "0A" and int(cell[1].rpartition(":")[2], 16) == port}
    links = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").glob("[0-9]*") if links else ():
        try:
            if not any(os.readlink(entry) in links for entry in (process / "fd").iterdir()):
                continue
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        config = [one[10:].decode(errors="replace") for one in variables if one.startswith(b"TF_CONFIG=")]
        return int(process.name), command, config[0] if config else ""
    return None
