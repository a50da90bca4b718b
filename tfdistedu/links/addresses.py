"""Where do ranks meet? At a name on one machine that leaves nothing behind, or at a host and a port.

    local:NAME    a Unix socket without a file, on Linux; elsewhere in the temporary folder, removed after the meeting
    host:port     TCP, from any machine that reaches it

Costs: nothing. Leaves out: what is said there (`tfdistedu.links.mesh`).
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
from typing import Any

from tfdistedu.errors import BadInput, MachineCannot


def new_address() -> str:
    """Return an address on this machine at which ranks can meet, once.

    Returns:
        `"local:NAME"`.

    Example:
        >>> new_address().startswith("local:")
        True

    """
    return f"local:tfdistedu-{secrets.token_hex(8)}"


def new_token() -> str:
    """Return a token that nobody guesses.

    Returns:
        32 hexadecimal digits.

    """
    return secrets.token_hex(16)


def listen(address: str, known: bool) -> tuple[socket.socket, str]:
    """Listen.

    Args:
        address: The address that all know.
        known: Whether to listen there; otherwise anywhere, at an address of its kind.

    Returns:
        The listening socket, and the address at which others reach it.

    Raises:
        BadInput: It is no address, or somebody listens there.

    """
    if address.startswith("local:"):
        address = address if known else new_address()
        listener = make_socket(address)
        target = target_of(address)
        listener.bind(target)
        listener.listen(128)
        return listener, address if isinstance(target, bytes) else f"file:{target}"
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise BadInput(f"{address!r} is no address: give local:NAME or host:port.")
    host = host.strip("[]")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        if known:
            listener = socket.create_server(("", int(port)), family=family, backlog=128)
        else:  # on the side that faces rank 0
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((host, int(port)))
                host = probe.getsockname()[0]
            listener = socket.create_server((host, 0), family=family, backlog=128)
    except OSError as error:
        raise BadInput(f"rank 0 cannot listen at {address} ({error.strerror}): who else uses it?") from None
    return listener, f"{host}:{listener.getsockname()[1]}"


def make_socket(address: str) -> socket.socket:
    """Make a socket that fits an address.

    Args:
        address: An address.

    Returns:
        A socket, not connected.

    Raises:
        MachineCannot: The system has no such sockets.

    """
    if address.startswith(("local:", "file:")):
        if not hasattr(socket, "AF_UNIX"):
            raise MachineCannot(f"this system has no Unix sockets: give host:port in place of {address}.")
        return socket.socket(socket.AF_UNIX)
    return socket.socket(socket.AF_INET6 if address.count(":") > 1 else socket.AF_INET)


def target_of(address: str) -> Any:
    """Return what `bind` and `connect` take: for local ones a name without a file, where there are such.

    Args:
        address: An address.

    Returns:
        Bytes, a path, or host and port.

    """
    kind, _, name = address.partition(":")
    if kind == "file":
        return name
    if kind == "local":
        return b"\0" + name.encode() if sys.platform == "linux" else os.path.join(tempfile.gettempdir(), name)
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
