"""How does one rank time an all-reduce so that a wrong sum, or a kind clock, cannot win?

A *block* is a few calls of one implementation with one size:

    fill, call, compare      the sum must be right, to the last bit (small whole numbers), before anything is timed
    fill with zeros          reduced in place again and again, anything else would overflow
    call call                warm: pages are there, ranks are level
    call call call ...       timed one by one, back to back: no barrier between them

Each rank sends its times home. A call's time is that of its slowest rank; the launcher finds it, for no rank can.

This file runs in the environments of the peers too, so it imports NumPy and the standard library and nothing else.
Cost: three calls more than are timed. Left out: other types than float32, other operations than the sum.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

PERIOD = 1021  # a prime: a chunk that lands in the wrong place holds other numbers


class Work(NamedTuple):
    """One message of an implementation: `fill(values)` sets this rank's part, `call()` reduces, `result()` reads."""

    fill: Callable[[np.ndarray], None]
    call: Callable[[], None]
    result: Callable[[], np.ndarray]


def in_place(data: np.ndarray, call: Callable[[], None]) -> Work:
    """Describe an implementation that puts the sum where the data was.

    Args:
        data: float32 [elements], which `call` reduces.
        call: Reduces it.

    Returns:
        The work.

    """
    return Work(lambda values: np.copyto(data, values), call, lambda: data)


def timed_block(work: Work, rank: int, n_ranks: int, elements: int, calls: int) -> list[float]:
    """Check one all-reduce, then time some.

    Args:
        work: The implementation's.
        rank: This rank.
        n_ranks: Number of ranks.
        elements: Length of the message, in float32.
        calls: Calls to time, back to back.

    Returns:
        Seconds of each call on this rank.

    Raises:
        ValueError: The sum is wrong.

    Example:
        >>> data = np.empty(5, np.float32)
        >>> len(timed_block(in_place(data, lambda: None), rank=0, n_ranks=1, elements=5, calls=3))
        3

    """
    # Step 1: the sum must be right. It depends on rank and index, and float32 holds it exactly.
    pattern = (np.arange(elements) % PERIOD).astype(np.float32)
    work.fill(pattern + np.float32(rank))
    work.call()
    expected = pattern * np.float32(n_ranks) + np.float32(n_ranks * (n_ranks - 1) // 2)
    wrong = np.flatnonzero(np.asarray(work.result()) != expected)
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"wrong sum on rank {rank}: element {i} of {elements} is {float(work.result()[i])!r} and should be "
            f"{float(expected[i])!r}; elements wrong: {len(wrong)}"
        )
    # Step 2: warm up with zeros.
    work.fill(np.zeros(elements, np.float32))
    for _ in range(2):
        work.call()
    # Step 3: the clock.
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        work.call()
        seconds.append(time.perf_counter() - start)
    return seconds


def serve(prepare: Callable[[int], Work], rank: int, n_ranks: int, address: str) -> None:
    """Answer the launcher until it closes the line: one block a request. Idle, a rank sleeps in a read.

    Args:
        prepare: From a number of elements to the work.
        rank: This rank.
        n_ranks: Number of ranks.
        address: Path of the launcher's Unix socket; its folder goes when the launcher is gone.

    """
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    threading.Thread(target=_end_with_the_launcher, args=(line.fileno(), address), daemon=True).start()
    connection = Connection(line.detach())
    connection.send({"rank": rank, "pid": os.getpid()})
    try:
        while (request := connection.recv()) is not None:
            signal.alarm(int(request["deadline"]) + 30)  # the launcher ends this rank before that, if it lives
            connection.send(_answer(prepare, rank, n_ranks, request))
            signal.alarm(0)
    except (EOFError, OSError):  # the launcher is gone without a word
        shutil.rmtree(os.path.dirname(address), ignore_errors=True)


def _answer(prepare: Callable[[int], Work], rank: int, n_ranks: int, request: dict[str, Any]) -> dict[str, Any]:
    try:
        # The work is let go at the end: a hundred idle MiB on each rank of each implementation would fill a laptop.
        elements = request["elements"]
        return {"value": timed_block(prepare(elements), rank, n_ranks, elements, request["calls"])}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def _end_with_the_launcher(descriptor: int, address: str) -> None:
    """Wait, asleep, until the other end is closed; then leave nothing, also out of the middle of a call."""
    poll = select.poll()
    poll.register(descriptor, getattr(select, "POLLRDHUP", select.POLLHUP))
    poll.poll()
    time.sleep(3)  # it may have closed the line in good order
    shutil.rmtree(os.path.dirname(address), ignore_errors=True)
    print("the launcher is gone", file=sys.stderr, flush=True)
    os._exit(1)


def arguments() -> tuple[str, Any, Any]:
    """Read the command line of a peer's program.

    Returns:
        The address of the launcher, then rank and number of ranks, or `None` where the peer knows them itself.

    """
    address, *rest = sys.argv[1:]
    return (address, *map(int, rest)) if rest else (address, None, None)
