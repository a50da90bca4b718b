"""How do ranks on any machines run a plan over TCP, without a thread and without a deadlock?

Each message of a plan is one frame: a head that says which call it belongs to, and the bytes.

    head     call's number | digest of what is called | round | bytes          24 + 8 bytes
    body     straight out of the sender's slot, straight into the receiver's place

Two that send each other much at once would wait for ever if each only sent. So a rank sends what the system takes at
once, keeps the rest in a queue, and works the queue off whenever it waits: nobody stands still who could read.

What waits in the queue lies in slots that may be written again: before that happens, the rest is copied. So a rank
never waits for a reader, only for what arrives.

Costs: two system calls a message if all goes well. Leaves out: encryption; more than one connection a pair.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from typing import Any

import numpy as np

from tfdistedu.links.fast import Arrival, Program, Round, Text
from tfdistedu.links.mesh import Mesh
from tfdistedu.links.peers import Mismatch, PeerGone, Peers
from tfdistedu.links.pieces import PIECE_BYTES

_PORT = struct.Struct("<I")
_HEAD = struct.Struct("<QQQQ")
_LONG = 0.1  # seconds
_BUFFER = 1 << 20  # bytes of a socket's buffer; larger ones leave the cache


class TcpLink:
    """One rank's link.

    Args:
        mesh: From `meet`, with the channels "control" and "data".
        peers: The control lines.
        deadline: Seconds of each wait.

    """

    def __init__(self, mesh: Mesh, peers: Peers, deadline: float):
        self.rank, self.n_ranks = mesh.rank, mesh.n_ranks
        self.peers, self.deadline = peers, deadline
        self._lines = _over_loopback(mesh)
        for line in self._lines.values():
            line.setblocking(False)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                line.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
        self._queues: dict[int, deque[memoryview]] = {peer: deque() for peer in self._lines}
        self._waiting: set[int] = set()  # peers with something in their queue
        self._sequence = self._digest = 0
        self._scratch = np.empty(PIECE_BYTES + 64, np.uint8)
        self._slots = [np.empty(PIECE_BYTES + 64, np.uint8) for _ in range(2)]
        self._head = bytearray(_HEAD.size)

    def begin(self, call: Text, buffers: Any = None) -> None:
        """Start a call: say what it is.

        Args:
            call: What; ranks that say different things call different things.
            buffers: Of no use here; the buffer that a call works on in place is given to `open`.

        """
        self._sequence += 1
        self._digest = call.digest

    def open(self, program: Program, dtype: np.dtype, start: int, lent: Any) -> list[np.ndarray]:  # noqa: D102
        self._dtype = dtype
        slots = [slot[: program.size * dtype.itemsize].view(dtype) for slot in self._slots]
        self._copy_the_rest()
        return slots if lent is None else [lent[start : start + program.size], slots[1]]

    def ready(self) -> None:  # noqa: D102
        pass

    def give(self, step: Round, slots: list[np.ndarray]) -> None:  # noqa: D102
        if step.readers and self._waiting:
            self._copy_the_rest()
        for dst, slot, where in step.sends:
            body = memoryview(slots[slot][where].view(np.uint8))
            head = _HEAD.pack(self._sequence, self._digest, step.index, body.nbytes)
            self._send(dst, head, body)

    def take(self, step: Round, arrival: Arrival, into: np.ndarray | None) -> np.ndarray:  # noqa: D102
        src, where = arrival.src, arrival.where
        items = where.stop - where.start
        self._receive(src, memoryview(self._head))
        sequence, digest, round_, n_bytes = _HEAD.unpack(self._head)
        if (sequence, digest, round_) != (self._sequence, self._digest, step.index):
            self.peers.give_up(Mismatch, f"ranks call different things: rank {src} and rank {self.rank}")
        if into is None:
            into = self._scratch[:n_bytes].view(self._dtype)[:items]
        self._receive(src, memoryview(into.view(np.uint8)))
        return into

    def finished(self, step: Round) -> None:  # noqa: D102
        pass

    def settle(self, program: Program) -> None:  # noqa: D102
        self._copy_the_rest()

    def close(self, program: Program) -> None:  # noqa: D102
        pass

    def end(self, wait: bool) -> None:
        """End a call: what is queued goes out, for this rank may not come back for long.

        Args:
            wait: Of no use here.

        """
        start = time.monotonic()
        while self._waiting:
            self._work_off()
            if self._waiting:
                self._block(next(iter(self._waiting)), None, start)

    def shut(self) -> None:
        """Close the lines."""
        self._queues.clear()
        for line in self._lines.values():
            line.close()

    def share(self, n_bytes: int) -> list[np.ndarray]:
        """Make a buffer; over TCP it is this rank's alone.

        Args:
            n_bytes: Its size.

        Returns:
            A list with the buffer at this rank's place.

        """
        return [np.zeros(n_bytes, np.uint8)] * self.n_ranks

    def _send(self, dst: int, head: bytes, body: memoryview) -> None:
        queue = self._queues[dst]
        sent = 0
        if not queue:
            try:
                sent = self._lines[dst].sendmsg([head, body])
            except BlockingIOError:
                sent = 0
            except OSError:
                self._lost(dst)
        if sent < len(head):
            queue.append(memoryview(head)[sent:])
            sent = len(head)
        if sent < len(head) + body.nbytes:
            queue.append(body[sent - len(head) :])
        if queue:
            self._waiting.add(dst)

    def _work_off(self) -> None:
        """Send what the system takes now."""
        for dst in list(self._waiting):
            queue, line = self._queues[dst], self._lines[dst]
            try:
                while queue:
                    sent = line.send(queue[0])
                    if sent < len(queue[0]):
                        queue[0] = queue[0][sent:]
                        break
                    queue.popleft()
            except BlockingIOError:
                continue
            except OSError:
                self._lost(dst)
            if not queue:
                self._waiting.discard(dst)

    def _copy_the_rest(self) -> None:
        """Copy what is queued: the slots that it lies in are to be written."""
        for dst in self._waiting:
            queue = self._queues[dst]
            for index, rest in enumerate(queue):
                queue[index] = memoryview(bytes(rest))

    def _receive(self, src: int, into: memoryview) -> None:
        """Fill a piece of memory from a line, and work off the queues meanwhile."""
        line, start = self._lines[src], None
        while into:
            try:
                got = line.recv_into(into)
            except BlockingIOError:
                if self._waiting:
                    self._work_off()
                start = time.monotonic() if start is None else start
                self._block(src, src, start)
                continue
            except OSError:
                got = 0
            if not got:
                self._lost(src)
            into, start = into[got:], None

    def _block(self, waits_for: int, reads: int | None, start: float) -> None:
        """Sleep until something can go on; look at the peers when they speak, and at the clock."""
        left = start + self.deadline - time.monotonic()
        if left <= 0:
            self.peers.too_late(waits_for, self.deadline)
        to_read = [*self.peers.open_lines, *([] if reads is None else [self._lines[reads]])]
        to_write = [self._lines[peer] for peer in self._waiting]
        ready, _, _ = _wait_ready(to_read, to_write, min(left, _LONG))
        if time.monotonic() - start >= _LONG:
            # Ranks that call different things may wait for each other without a frame: so all hear what this one calls.
            self.peers.announce()
        if any(line in self.peers.open_lines for line in ready):
            self.peers.check(waits_for, lambda: reads is not None and _has_data(self._lines[reads]))

    def _lost(self, peer: int) -> None:
        """A line has ended: say why, if its rank said so."""
        end = time.monotonic() + 0.2
        while time.monotonic() < end:  # the control line may be a moment later
            self.peers.check(peer, lambda: False)
            time.sleep(0.005)
        self.peers.give_up(PeerGone, f"rank {peer} closed its line to rank {self.rank}")


def _over_loopback(mesh: Mesh) -> dict[int, socket.socket]:
    """Return the data lines; where ranks met without a port, they are joined by TCP now, over the lines that they have.

    Each pair in turn: the lower rank tells a port, the higher one from which it comes; a stranger comes from another.
    """
    lines = {}
    for peer, line in sorted(mesh.lines["data"].items()):
        if line.family != getattr(socket, "AF_UNIX", None):
            lines[peer] = line
            continue
        line.settimeout(30.0)
        if mesh.rank < peer:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                line.sendall(_PORT.pack(listener.getsockname()[1]))
                (port,) = _PORT.unpack(_exactly(line, _PORT.size))
                listener.settimeout(30.0)
                while True:
                    lines[peer], come_from = listener.accept()
                    if come_from[1] == port:
                        break
                    lines[peer].close()
        else:
            (port,) = _PORT.unpack(_exactly(line, _PORT.size))
            lines[peer] = socket.create_connection(("127.0.0.1", port), timeout=30.0)
            line.sendall(_PORT.pack(lines[peer].getsockname()[1]))
    return lines


def _exactly(line: socket.socket, n_bytes: int) -> bytes:
    """Read so many bytes."""
    data = b""
    while len(data) < n_bytes:
        part = line.recv(n_bytes - len(data))
        if not part:
            raise PeerGone("a rank ended before the ranks were joined.")
        data += part
    return data


def _has_data(line: socket.socket) -> bool:
    """Tell whether something can be read."""
    try:
        return bool(line.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


def _wait_ready(to_read: list[socket.socket], to_write: list[socket.socket], seconds: float) -> Any:
    """Like `select.select`, for any number of sockets where there is `poll`."""
    if not hasattr(select, "poll"):
        return select.select(to_read, to_write, [], seconds)
    poll = select.poll()
    events: dict[int, int] = {}
    for line in to_read:
        events[line.fileno()] = select.POLLIN
    for line in to_write:
        events[line.fileno()] = events.get(line.fileno(), 0) | select.POLLOUT
    for descriptor, mask in events.items():
        poll.register(descriptor, mask)
    found = dict(poll.poll(1000 * seconds))
    reads = select.POLLIN | select.POLLHUP | select.POLLERR
    return [line for line in to_read if found.get(line.fileno(), 0) & reads], [], []
