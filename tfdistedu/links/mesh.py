"""How do ranks find each other, and how does each learn that another has died or given up?

All meet at one address, rank 0's. It tells everybody where the others listen; then each pair is joined:

    rank 1 --"token, I am 1, I listen at B"--> rank 0 --"1 is at B, 2 is at C; and my note"--> all
    rank 2 --"token, I am 2"--> rank 1         (each connects to all below it)

Who has no token is turned away, and keeps nobody waiting. The lines stay open: the system closes them when a process
ends, whatever ends it, so an end of file is a death. A rank that gives up says why to all before it raises.

`local:NAME` is an address on this machine that leaves nothing behind (a socket without a file, on Linux), and can carry
descriptors; `host:port` is one that other machines reach.

Costs: n (n - 1) / 2 connections, some milliseconds. Leaves out: encryption; the token keeps strangers out, not enemies.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from tfdistedu.errors import BadInput, DeadlineExceeded
from tfdistedu.links.addresses import listen, make_socket, target_of

_LINE = 1 << 20  # bytes of a longest greeting or roster


@dataclass
class Mesh:
    """One rank's lines to all others.

    Attributes:
        rank: This rank.
        n_ranks: How many there are.
        lines: `lines[channel][peer]` is a connected socket.
        note: What rank 0 told all.

    """

    rank: int
    n_ranks: int
    lines: dict[str, dict[int, socket.socket]]
    note: Any = None

    def close(self) -> None:
        """Close all lines."""
        for lines in self.lines.values():
            for line in lines.values():
                line.close()


def meet(
    rank: int,
    n_ranks: int,
    address: str,
    token: str,
    channels: tuple[str, ...] = ("control",),
    note: Any = None,
    deadline: float = 30.0,
) -> Mesh:
    """Join all ranks in pairs.

    Args:
        rank: This rank, 0 to `n_ranks - 1`.
        n_ranks: How many there are.
        address: Where rank 0 listens: `"local:NAME"` or `"host:port"`.
        token: What all know, and no stranger.
        channels: A line for each pair and channel is made; the first one is "control".
        note: What rank 0 tells all; anything that JSON can hold.
        deadline: Seconds for all of it.

    Returns:
        The lines.

    Raises:
        DeadlineExceeded: Some did not come; the message names them.
        BadInput: The address cannot be listened at, or a number is out of range.

    """
    if not 0 <= rank < n_ranks:
        raise BadInput(f"rank {rank} is none of the {n_ranks} ranks 0 .. {n_ranks - 1}.")
    return _Meeting(rank, n_ranks, address, token, channels, time.monotonic() + deadline, deadline).run(note)


@dataclass
class _Meeting:
    """The state of one rank while all come."""

    rank: int
    n_ranks: int
    address: str
    token: str
    channels: tuple[str, ...]
    end: float
    deadline: float
    lines: dict[str, dict[int, socket.socket]] = field(default_factory=dict)
    where: dict[int, str] = field(default_factory=dict)

    def run(self, note: Any) -> Mesh:
        self.lines = {channel: {} for channel in self.channels}
        if self.n_ranks == 1:
            return Mesh(0, 1, self.lines, note)
        with contextlib.ExitStack() as on_error, contextlib.ExitStack() as always:
            on_error.callback(lambda: Mesh(self.rank, self.n_ranks, self.lines).close())
            # Step 1: listen. Rank 0 at the address that all know, the others anywhere.
            listener, mine = listen(self.address, known=self.rank == 0)
            always.callback(listener.close)
            if mine.startswith("file:"):
                always.callback(lambda: os.path.exists(mine[5:]) and os.unlink(mine[5:]))
            if self.rank == 0:
                # Step 2: rank 0 waits for all, and tells each where the others are.
                self.accept(listener, {(peer, "control") for peer in range(1, self.n_ranks)})
                roster = json.dumps({"where": self.where, "note": note}).encode() + b"\n"
                for line in self.lines["control"].values():
                    line.sendall(roster)
                wanted = {(peer, channel) for peer in range(1, self.n_ranks) for channel in self.channels[1:]}
                self.where = {0: self.address}
            else:
                first = self.connect(self.address, 0, "control", mine)
                self.lines["control"][0] = first
                roster = self.read_roster(first)
                note = roster["note"]
                self.where = {int(peer): where for peer, where in roster["where"].items()} | {0: self.address}
                wanted = {(peer, channel) for peer in range(self.rank + 1, self.n_ranks) for channel in self.channels}
                # Step 3: each connects to all below it.
                for peer in range(self.rank):
                    for channel in self.channels:
                        if peer or channel != "control":
                            self.lines[channel][peer] = self.connect(self.where[peer], peer, channel, mine)
            self.accept(listener, wanted)
            on_error.pop_all()
        return Mesh(self.rank, self.n_ranks, self.lines, note)

    def accept(self, listener: socket.socket, wanted: set[tuple[int, str]]) -> None:
        """Take in those who know the token, in any order; a stranger's silence holds up nobody."""
        said: dict[socket.socket, bytes] = {}
        listener.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            try:
                while wanted:
                    left = self.end - time.monotonic()
                    if left <= 0:
                        self.say_missing({peer for peer, _ in wanted})
                    for key, _ in selector.select(min(left, 0.5)):
                        line = key.fileobj
                        if line is listener:
                            with contextlib.suppress(OSError):
                                new, _ = listener.accept()
                                new.setblocking(False)
                                said[new] = b""
                                selector.register(new, selectors.EVENT_READ)
                            continue
                        data = _receive(line)
                        if data is None:
                            continue
                        said[line] += data
                        if data and b"\n" not in said[line] and len(said[line]) < 4096:
                            continue
                        selector.unregister(line)
                        self.greet(line, said.pop(line), wanted)
            finally:
                for stranger in said:
                    stranger.close()

    def greet(self, line: socket.socket, text: bytes, wanted: set[tuple[int, str]]) -> None:
        """Keep a line if who is at its other end knows the token, and close it otherwise."""
        try:
            hello = json.loads(text)
            known = hmac.compare_digest(str(hello["token"]).encode(), self.token.encode())
            place = (int(hello["rank"]), str(hello["channel"]))
            listens = str(hello["listens"])
        except (ValueError, KeyError, TypeError):
            known = False
        if not known or place not in wanted:
            line.close()
            return
        wanted.discard(place)
        line.setblocking(True)
        self.lines[place[1]][place[0]] = line
        self.where[place[0]] = listens

    def connect(self, address: str, peer: int, channel: str, mine: str) -> socket.socket:
        """Connect to a rank that listens, or will soon."""
        hello = {"token": self.token, "rank": self.rank, "channel": channel, "listens": mine}
        while True:
            line = make_socket(address)
            try:
                line.settimeout(max(0.1, self.end - time.monotonic()))
                line.connect(target_of(address))
                line.sendall(json.dumps(hello).encode() + b"\n")
                line.settimeout(None)
            except OSError:
                line.close()
                if time.monotonic() > self.end:
                    self.say_missing({peer})
                time.sleep(0.01)
            else:
                return line

    def read_roster(self, line: socket.socket) -> dict[str, Any]:
        """Wait for rank 0 to say where all are."""
        data = b""
        while not data.endswith(b"\n"):
            line.settimeout(max(0.1, self.end - time.monotonic() + 1.0))  # rank 0 names who is missing: let it
            try:
                # Up to the end of its line: what rank 0 says next on this line is for `Peers`.
                seen = line.recv(_LINE, socket.MSG_PEEK)
                part = line.recv(seen.index(b"\n") + 1 if b"\n" in seen else len(seen))
            except TimeoutError:
                self.say_missing({0})
            except OSError:
                part = b""
            if not part:
                raise DeadlineExceeded(
                    f"rank {self.rank}: rank 0 at {self.address} closed the line: it gave up waiting for others, or "
                    f"this rank has another token or number than it expects ({self.n_ranks} ranks)."
                )
            data += part
        line.settimeout(None)
        return json.loads(data)

    def say_missing(self, missing: set[int]) -> None:
        who = ", ".join(map(str, sorted(missing)))
        raise DeadlineExceeded(
            f"rank {self.rank} waited {self.deadline:g} s for rank{'s' * (len(missing) > 1)} {who} to come to "
            f"{self.address}. Is each of the {self.n_ranks} ranks started, with this address and token?"
        )


def _receive(line: socket.socket) -> bytes | None:
    """Read what is there up to the end of a line, and nothing behind it: b"" at the end, `None` if nothing is."""
    try:
        seen = line.recv(4096, socket.MSG_PEEK)
        return line.recv(seen.index(b"\n") + 1 if b"\n" in seen else len(seen)) if seen else b""
    except BlockingIOError:
        return None
    except OSError:
        return b""
