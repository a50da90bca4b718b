"""How do processes of one machine read each other's memory in place, and never too early or too late?

Each rank has a segment that all can map: a page of counters, and two halves of a window.

    page     done: a number that only grows      call: what I call, by a number and in words
    window   half 0: slot 0 | slot 1             half 1: slot 0 | slot 1        pieces take turns

A rank publishes by raising `done` after it wrote; it reads another's window when that rank's `done` is high enough. A
half is written again two pieces later, when those who read it have gone on: a rank never waits for its slowest reader.

Segments have no name: `memfd_create`, or a file that is unlinked at once, handed over as a descriptor. The system frees
them with the last process, whatever ended it.

Waiting: some looks (none if ranks outnumber cores), then the core is given away for a millisecond, then short sleeps in
which deadline and peers are looked at. On processors that may reorder stores (all but x86), `_order` stands between
data and counter: a lock's release and acquire are a barrier there.

Costs: a window of four pieces a rank, in memory only as far as it is used. Leaves out: NUMA, huge pages.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import tempfile
import threading
import time
from typing import Any

import numpy as np

from tfdistedu.errors import MachineCannot
from tfdistedu.links.fast import Arrival, Program, Round, Text
from tfdistedu.links.mesh import Mesh
from tfdistedu.links.peers import Mismatch, Peers
from tfdistedu.links.pieces import PIECE_BYTES

_PAGE = 8192
_DONE, _ENTERED, _CALLS, _N_CALLS = 0, 8, 16, 8  # counters lie a cache line apart
_TEXTS, _TEXT_BYTES = 1024, 256
_YIELDS_FOR = 1e-3  # seconds


def cores() -> int:
    """Return how many cores this process may use.

    Returns:
        At least 1.

    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_segment(n_bytes: int) -> int:
    """Make shared memory without a name.

    Args:
        n_bytes: Its size; memory is taken only where something is written.

    Returns:
        A file descriptor.

    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tfdistedu", os.MFD_CLOEXEC)
    else:
        descriptor, path = tempfile.mkstemp(prefix="tfdistedu-")
        os.unlink(path)
    os.ftruncate(descriptor, n_bytes)
    return descriptor


def exchange(mesh: Mesh, descriptor: int) -> dict[int, int]:
    """Give a descriptor to all others, and get theirs. All ranks call it, in one order.

    Args:
        mesh: The lines; they have to be local ones.
        descriptor: This rank's.

    Returns:
        The others' descriptors, by rank.

    """
    import socket

    lines = mesh.lines["segments"]
    for line in lines.values():
        socket.send_fds(line, [b"s"], [descriptor])
    theirs = {}
    for peer, line in lines.items():
        line.settimeout(30.0)
        data, descriptors, _, _ = socket.recv_fds(line, 1, 1)
        if not data:
            raise MachineCannot(f"rank {mesh.rank}: rank {peer} ended before it gave its memory.")
        theirs[peer] = descriptors[0]
    return theirs


class SharedMemoryLink:
    """One rank's link.

    Args:
        mesh: From `meet`, over a local address, with the channels "control" and "segments".
        peers: The control lines.
        deadline: Seconds of each wait.
        weak_order: Whether the processor may reorder stores; `None` looks which one it is.

    """

    def __init__(self, mesh: Mesh, peers: Peers, deadline: float, weak_order: bool | None = None):
        self.rank, self.n_ranks = mesh.rank, mesh.n_ranks
        self.mesh, self.peers, self.deadline = mesh, peers, deadline
        self._slot_bytes = PIECE_BYTES + 64
        own = make_segment(_PAGE + 4 * self._slot_bytes)
        descriptors = {self.rank: own, **exchange(mesh, own)}
        self._maps = {r: mmap.mmap(fd, _PAGE + 4 * self._slot_bytes) for r, fd in descriptors.items()}
        for descriptor in descriptors.values():
            os.close(descriptor)
        self._pages = [memoryview(self._maps[r])[:_PAGE] for r in range(self.n_ranks)]
        self._counters = [page.cast("q") for page in self._pages]
        self._mine = self._counters[self.rank]
        self._views: dict[np.dtype, list[list[list[np.ndarray]]]] = {}
        self._releases: list[list[tuple[int, int]]] = [[], []]
        self._sequence = self._piece = 0
        self._base = 1  # counters begin at 0: nobody is ready before the first piece is loaded
        self._digest, self._checked = 0, True
        self._written = [0] * _N_CALLS
        self._others = [peer for peer in range(self.n_ranks) if peer != self.rank]
        self._spins = 50 if self.n_ranks <= cores() else 0
        weak = platform.machine().lower() not in ("x86_64", "amd64", "i686") if weak_order is None else weak_order
        self._barrier = threading.Lock() if weak else None
        if self._barrier is not None:
            self._barrier.acquire()

    def begin(self, call: Text, buffers: list[np.ndarray] | None = None) -> None:
        """Start a call: say what it is.

        Args:
            call: What; ranks that say different things call different things.
            buffers: Each rank's buffer, when the call works in place.

        """
        self._sequence += 1
        self._buffers = buffers
        at = self._sequence % _N_CALLS
        self._digest = call.digest
        if self._written[at] != call.digest:
            place = _TEXTS + at * _TEXT_BYTES
            self._pages[self.rank][place : place + len(call.data)] = call.data
            self._mine[_CALLS + at] = self._written[at] = call.digest
        self._publish(_ENTERED, self._sequence)
        self._checked = False

    def check_calls(self) -> None:
        """Wait until all are in this call, and compare what they call.

        Raises:
            Mismatch: Some call something else; the message says who calls what.

        """
        self._checked = True
        at = _CALLS + self._sequence % _N_CALLS
        differs = False
        for peer in self._others:
            self._wait(peer, _ENTERED, self._sequence)
            differs |= self._counters[peer][at] != self._digest
        if differs:
            self.peers.give_up(Mismatch, f"ranks call different things in call {self._sequence}")

    def open(self, program: Program, dtype: np.dtype, start: int, lent: Any) -> list[np.ndarray]:  # noqa: D102
        half = self._piece & 1
        for rank, value in self._releases[half]:
            self._wait(rank, _DONE, value)
        views = self._views.get(dtype)
        if views is None:
            views = self._views[dtype] = self._make_views(dtype)
        self._theirs = [halves[half] for halves in views]
        if lent is not None:
            here = slice(start, start + program.size)
            self._theirs = [[buffer[here], slots[1]] for buffer, slots in zip(self._buffers, self._theirs, strict=True)]
        return self._theirs[self.rank]

    def ready(self) -> None:  # noqa: D102
        self._publish(_DONE, self._base)
        if not self._checked:
            self.check_calls()

    def give(self, step: Round, slots: list[np.ndarray]) -> None:  # noqa: D102
        for rank, round_ in step.readers:
            self._wait(rank, _DONE, self._base + round_ + 1)

    def take(self, step: Round, arrival: Arrival, into: np.ndarray | None) -> np.ndarray:  # noqa: D102
        self._wait(arrival.src, _DONE, self._base + step.index)
        return self._theirs[arrival.src][arrival.slot][arrival.where]

    def finished(self, step: Round) -> None:  # noqa: D102
        self._publish(_DONE, self._base + step.index + 1)

    def settle(self, program: Program) -> None:  # noqa: D102
        for rank, round_ in program.release:
            self._wait(rank, _DONE, self._base + round_ + 1)

    def close(self, program: Program) -> None:  # noqa: D102
        self._releases[self._piece & 1] = [(rank, self._base + round_ + 1) for rank, round_ in program.release]
        self._piece += 1
        self._base += program.n_rounds + 1

    def end(self, wait: bool) -> None:
        """End a call.

        Args:
            wait: Whether others may still read what the caller gets back.

        """
        if not self._checked:
            self.check_calls()
        if wait:
            for rank, value in self._releases[0] + self._releases[1]:
                self._wait(rank, _DONE, value)

    def shut(self) -> None:
        """Unmap all segments."""
        self._views.clear()
        self._theirs = []
        self._buffers = None
        for view in [*self._counters, *self._pages]:
            view.release()
        for mapped in self._maps.values():
            with contextlib.suppress(BufferError):  # an array of the caller's lies in it: it is freed with that
                mapped.close()

    def share(self, n_bytes: int) -> list[np.ndarray]:
        """Make a buffer on each rank that all can read. All ranks call it.

        Args:
            n_bytes: Its size, the same on all.

        Returns:
            Each rank's buffer, bytes.

        """
        own = make_segment(max(1, n_bytes))
        descriptors = {self.rank: own, **exchange(self.mesh, own)}
        maps = {r: mmap.mmap(fd, max(1, n_bytes)) for r, fd in descriptors.items()}
        for descriptor in descriptors.values():
            os.close(descriptor)
        return [np.frombuffer(maps[r], np.uint8, n_bytes) for r in range(self.n_ranks)]

    def _make_views(self, dtype: np.dtype) -> list[list[list[np.ndarray]]]:
        """Return `views[rank][half][slot]`."""
        items = self._slot_bytes // dtype.itemsize
        return [
            [
                [
                    np.frombuffer(self._maps[rank], dtype, items, _PAGE + (2 * half + slot) * self._slot_bytes)
                    for slot in range(2)
                ]
                for half in range(2)
            ]
            for rank in range(self.n_ranks)
        ]

    def _publish(self, counter: int, value: int) -> None:
        if self._barrier is not None:
            self._order()
        self._mine[counter] = value

    def _wait(self, rank: int, counter: int, value: int) -> None:
        counters = self._counters[rank]
        if counters[counter] < value:
            self._wait_longer(rank, counters, counter, value)
        if self._barrier is not None:
            self._order()

    def _order(self) -> None:
        """Keep what stands before from being seen after what stands behind."""
        self._barrier.release()
        self._barrier.acquire()

    def _wait_longer(self, rank: int, counters: memoryview, counter: int, value: int) -> None:
        for _ in range(self._spins):
            if counters[counter] >= value:
                return
        start = now = time.monotonic()
        pause = 5e-5
        while counters[counter] < value:
            if now - start < _YIELDS_FOR and hasattr(os, "sched_yield"):
                os.sched_yield()
            else:
                self.peers.check(rank, lambda: counters[counter] >= value)
                if now - start > self.deadline:
                    self.peers.too_late(rank, self.deadline)
                time.sleep(pause)
                pause = min(2 * pause, 1e-3)
            now = time.monotonic()
