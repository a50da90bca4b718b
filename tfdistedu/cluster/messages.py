"""How do a launcher and its server talk: a JSON message, and open descriptors beside it, over a Unix socket.

    | length, 8 bytes | JSON |       with the first byte the kernel hands over the descriptors

Left out: anything that is not on this machine.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!Q")


def send(sock: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    """Send one JSON message, with open descriptors beside it.

    Args:
        sock: A Unix stream socket.
        message: What `json.dumps` takes.
        descriptors: Handed over with its first byte; they stay open here.

    """
    data = json.dumps(message).encode()
    socket.send_fds(sock, [_LENGTH.pack(len(data))], descriptors)
    sock.sendall(data)


def receive(sock: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Receive one message and the descriptors beside it.

    Args:
        sock: A Unix stream socket.

    Returns:
        The message, `None` at the end of the stream, and the descriptors.

    """
    head, descriptors, _, _ = socket.recv_fds(sock, _LENGTH.size, 4)
    data = b""
    with contextlib.suppress(ConnectionError):
        while head and len(head) < _LENGTH.size:
            head += sock.recv(_LENGTH.size - len(head)) or b"\0" * _LENGTH.size
        (length,) = _LENGTH.unpack(head[: _LENGTH.size]) if head else (0,)
        while len(data) < length:
            part = sock.recv(min(length - len(data), 1 << 20))
            if not part:
                return None, descriptors
            data += part
    return (json.loads(data) if data else None), descriptors
