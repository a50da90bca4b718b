"""Who waits for whom, and what becomes of that when somebody dies, leaves, or calls something else?

Every wait ends: with what was waited for, at a deadline, or because of a peer. So whoever waits looks at three things:

    the line to each peer     end of file                    that process ended
                              "left"                         it closed its communicator, after its last call
                              "failed: why, in which call"   it gave up; so does everybody who hears of it
    the clock                 past the deadline              this rank gives up, and tells all

Who gives up collects for a moment what the others say: so that *each* rank's error tells who called what.

Costs: nothing while all goes well; a poll of the lines every millisecond of a long wait. Leaves out: going on with
fewer.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import time
from collections.abc import Callable
from typing import NoReturn

from tfdistedu.errors import DeadlineExceeded, TfdisteduError
from tfdistedu.links.mesh import Mesh

_PATIENCE = 1.0  # seconds in which the others may say what they called


class PeerGone(TfdisteduError):
    """The process of a rank ended, or it left, while others needed it."""


class Mismatch(TfdisteduError):
    """Ranks called different things."""


class PeerFailed(TfdisteduError):
    """Another rank gave up; the message says why."""


class Peers:
    """The control lines of one rank.

    `call` is the number of this rank's call, and what it is in words; `open_lines` are sockets whose end has not come.

    Args:
        mesh: From `meet`.

    """

    def __init__(self, mesh: Mesh):
        self.rank, self.n_ranks = mesh.rank, mesh.n_ranks
        self.call = (0, "nothing yet")
        self._lines = dict(mesh.lines["control"])
        self.open_lines = list(self._lines.values())
        self._text = dict.fromkeys(self._lines, b"")
        self._left: set[int] = set()
        self._gone: set[int] = set()
        self._failed: dict[int, dict[str, str]] = {}
        self._called: dict[int, tuple[int, str]] = {}
        self._announced = 0
        self._told = False
        self._selector = selectors.DefaultSelector()
        for peer, line in self._lines.items():
            line.setblocking(False)
            self._selector.register(line, selectors.EVENT_READ, peer)

    def check(self, waits_for: int, has_come: Callable[[], bool]) -> None:
        """Look at the lines.

        Args:
            waits_for: The rank that this one waits for. That another one left is no harm.
            has_come: Tells whether what is awaited is there by now: who leaves may have sent it just before.

        Raises:
            PeerGone: A process ended, or the awaited rank left.
            PeerFailed: A rank gave up.
            Mismatch: A rank gave up because calls differ.

        """
        self._read(0)
        if has_come():
            return
        if self._failed:
            self.give_up(PeerFailed, "")
        for peer, (number, words) in self._called.items():
            if number == self.call[0] and words != self.call[1]:
                self.give_up(
                    Mismatch, f"ranks call different things in call {number}: rank {peer} and rank {self.rank}"
                )
        if self._gone:
            who = sorted(self._gone)[0]
            self.give_up(PeerGone, f"rank {who} is gone (its process ended); rank {self.rank} waited for {waits_for}")
        if waits_for in self._left:
            self.give_up(PeerGone, f"rank {waits_for} left (it closed its communicator), and rank {self.rank} waits")

    def announce(self) -> None:
        """Tell all what this rank calls: it waits long, and they may call something else. Once a call."""
        if self._announced != self.call[0]:
            self._announced = self.call[0]
            self._send({"calls": self.call})

    def drain(self) -> None:
        """Read what came; who never waits would otherwise let the lines fill up."""
        self._read(0)

    def too_late(self, waits_for: int, deadline: float) -> NoReturn:
        """Give up at a deadline.

        Args:
            waits_for: The rank that did not come.
            deadline: The seconds that it was given.

        Raises:
            DeadlineExceeded: Always; the message names the rank.

        """
        self._read(0)
        if self._failed:  # it gave up in the same moment, and knows more
            self.give_up(PeerFailed, "")
        self.give_up(
            DeadlineExceeded,
            f"rank {self.rank} waited {deadline:g} s for rank {waits_for}. Is it stuck, stopped, or in other code",
        )

    def give_up(self, kind: type[TfdisteduError], why: str) -> NoReturn:
        """Tell all, hear what they say, and raise.

        Args:
            kind: The class of the error.
            why: What is wrong, for people; "" when others said it.

        Raises:
            TfdisteduError: Always, of class `kind`; or of the class of what the others said first.

        """
        if not self._told:
            self._told = True
            message = {"failed": why or next(iter(self._failed.values()))["failed"], "kind": kind.__name__}
            self._send({**message, "call": self._mine()})
        end = time.monotonic() + _PATIENCE
        others = set(self._lines) - self._gone - self._left
        while not others <= set(self._failed) and (left := end - time.monotonic()) > 0:
            self._read(left)
            others -= self._gone | self._left
        if not why:
            first = next(iter(self._failed.values()))
            why = first["failed"]
            kinds = {each.__name__: each for each in (Mismatch, PeerGone, DeadlineExceeded)}
            kind = kinds.get(first["kind"], kind)
        calls = {self.rank: self._mine()} | {peer: each["call"] for peer, each in self._failed.items()}
        raise kind(f"{why}. Who called what: " + "; ".join(f"rank {r}: {calls[r]}" for r in sorted(calls)))

    def close(self) -> None:
        """Say that this rank leaves. The lines belong to the mesh."""
        if not self._told:
            self._send({"left": True})
        self._selector.close()

    def let_go(self) -> None:
        """Close this process's copy of the selector, and say nothing: it is a forked child."""
        self._selector.close()

    def _mine(self) -> str:
        return f"call {self.call[0]}, {self.call[1]}"

    def _send(self, message: dict[str, object]) -> None:
        text = json.dumps(message).encode() + b"\n"
        for line in self._lines.values():
            with contextlib.suppress(OSError):  # it is gone, and needs to hear nothing
                line.send(text)

    def _read(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            peer, line = key.data, key.fileobj
            try:
                data = line.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                self._selector.unregister(line)
                self.open_lines.remove(line)
                if peer not in self._left and peer not in self._failed:
                    self._gone.add(peer)
                continue
            *texts, self._text[peer] = (self._text[peer] + data).split(b"\n")
            for text in texts:
                message = json.loads(text)
                if "left" in message:
                    self._left.add(peer)
                elif "calls" in message:
                    self._called[peer] = tuple(message["calls"])
                else:
                    self._failed[peer] = message
