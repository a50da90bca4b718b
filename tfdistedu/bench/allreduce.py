"""Whose all-reduce is how fast, on this machine, in one run?

Every implementation reduces float32 messages of the same sizes, with the same ranks. A busy moment of the machine must
not hit one alone, so they take turns: a *block* of calls each, round after round; who waits sleeps.

    size 4 KiB    round 1: shared_memory tcp gloo openmpi    round 2: shared_memory tcp gloo openmpi    ...
    size 64 KiB   round 1: ...

A call's time is its slowest rank's. `seconds` is the median over all calls of all rounds; the quartiles say how far the
middle half of them lies apart. Then, in bytes per second of 10^9 [1]:

    algbw = bytes / seconds         busbw = algbw * 2(n - 1)/n      what a link carries, whatever n is

Only ratios within one run mean something: another hour, another machine, other numbers.

Cost: two to three minutes with the sizes of the command line. Left out: several machines; other types than float32.

[1] NVIDIA: nccl-tests, doc/PERFORMANCE.md, "Bandwidth", on algorithm and bus bandwidth.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfdistedu.bench.implementations import IMPLEMENTATIONS, PEERS, Implementation
from tfdistedu.errors import BadInput, MachineCannot, TfdisteduError

RANKS = (2, 4)
SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 100 << 20)
BLOCK_SECONDS = 0.25  # of calls in a block; a call that takes longer is made three times
FEWEST, MOST = 3, 300  # calls in a block


class Row(NamedTuple):
    """One measurement.

    `seconds` of one call, the median; `algbw` and `busbw` in GB/s (10^9 bytes); `low` and `high`, the quartiles of
    the seconds of `calls` calls.
    """

    implementation: str
    ranks: int
    bytes: int
    seconds: float
    algbw: float
    busbw: float
    low: float
    high: float
    calls: int


class Result(NamedTuple):
    """All rows; `missing`: who is not here, and why; `failed`: who was here and crashed, hung or gave a wrong sum."""

    rows: list[Row]
    missing: dict[str, str]
    failed: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """Return plain data.

        Returns:
            `rows`, `spread` (for each row: how many calls, and the quartiles of their seconds), `missing`, `failed`.

        """
        names = ("implementation", "ranks", "bytes")
        rows = [{name: getattr(row, name) for name in (*names, "seconds", "algbw", "busbw")} for row in self.rows]
        spread = [{name: getattr(row, name) for name in (*names, "calls", "low", "high")} for row in self.rows]
        return {"rows": rows, "spread": spread, "missing": self.missing, "failed": self.failed}


def measure(
    ranks: Sequence[int] = RANKS,
    sizes: Sequence[int] = SIZES,
    rounds: int = 5,
    *,
    implementations: Sequence[Implementation] = IMPLEMENTATIONS,
    peers: Path | None = None,
    block_seconds: float = BLOCK_SECONDS,
    deadline: float = 60.0,
    on_block: Callable[[str], None] = lambda text: None,
) -> Result:
    """Time all implementations in turn.

    Args:
        ranks: Numbers of ranks, each 2 or more.
        sizes: Bytes of a message, each a multiple of 4.
        rounds: Blocks of each implementation for each size.
        implementations: Who takes part, in the order of their turns.
        peers: The environment that `make peers` made; `None`: `.venv-peers` in the working folder.
        block_seconds: Seconds of calls in a block.
        deadline: Seconds that a block may take before its implementation is given up.
        on_block: Called before each start and each block with what comes, for progress.

    Returns:
        The rows, and who could not be measured, with the reason.

    Raises:
        BadInput: Ranks, sizes or rounds that cannot be measured.

    """
    check(ranks, sizes, rounds)
    folder = Path(PEERS) if peers is None else peers
    result = Result([], {}, {})
    for n_ranks in ranks:
        with contextlib.ExitStack() as stack:
            turns: dict[str, Any] = {}
            for one in implementations:
                on_block(f"starting {one.name}, {n_ranks} ranks")
                with _told(one, n_ranks, result, turns):
                    turns[one.name] = stack.enter_context(one.start(n_ranks, folder))
            for size in sizes:
                seconds: dict[str, list[float]] = {one.name: [] for one in implementations}
                for round_ in range(rounds):
                    for one in [one for one in implementations if one.name in turns]:
                        on_block(f"{one.name}, {n_ranks} ranks, {in_units(size)}, round {round_ + 1} of {rounds}")
                        with _told(one, n_ranks, result, turns):
                            calls = _calls(seconds[one.name], block_seconds)
                            by_rank = turns[one.name].block(size // 4, calls, deadline)
                            seconds[one.name] += [max(call) for call in zip(*by_rank, strict=True)]
                done = [one.name for one in implementations if one.name in turns]
                result.rows.extend(as_row(name, n_ranks, size, seconds[name]) for name in done)
    return result


def check(ranks: Sequence[int], sizes: Sequence[int], rounds: int) -> None:
    """Refuse what cannot be measured.

    Args:
        ranks: Numbers of ranks.
        sizes: Bytes of a message.
        rounds: Blocks of each implementation.

    Raises:
        BadInput: It cannot; the message says what would do.

    """
    if not ranks or min(ranks) < 2 or len(set(ranks)) < len(ranks):
        raise BadInput(f"bench allreduce: numbers of ranks are 2 or more, each once; not {list(ranks)}.")
    if not sizes or any(size < 4 or size % 4 for size in sizes) or len(set(sizes)) < len(sizes):
        raise BadInput(f"bench allreduce: sizes are whole float32 numbers of 4 bytes, each once; not {list(sizes)}.")
    if rounds < 1:
        raise BadInput(f"bench allreduce: at least 1 round, not {rounds}.")


def as_row(name: str, n_ranks: int, size: int, seconds: Sequence[float]) -> Row:
    """Turn the times of calls into a row.

    Args:
        name: The implementation.
        n_ranks: Number of ranks.
        size: Bytes of a message.
        seconds: Of each call, its slowest rank's.

    Returns:
        The row.

    Example:
        >>> row = as_row("tcp", 4, 10**9, [0.5, 9.0, 0.5])
        >>> row.seconds, row.algbw, row.busbw
        (0.5, 2.0, 3.0)

    """
    median = statistics.median(seconds)
    low, _, high = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else [median] * 3
    algbw = size / median / 1e9
    return Row(name, n_ranks, size, median, algbw, algbw * 2 * (n_ranks - 1) / n_ranks, low, high, len(seconds))


def in_units(size: int) -> str:
    """Write a size as one reads it.

    Args:
        size: Bytes.

    Returns:
        Such as "64 KiB".

    Example:
        >>> in_units(64 << 10), in_units(100 << 20), in_units(1000)
        ('64 KiB', '100 MiB', '1000 B')

    """
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def _calls(seconds: Sequence[float], block_seconds: float) -> int:
    """Choose how many calls to time: a few in the first round, then as many as fill a block."""
    if not seconds:
        return FEWEST
    return max(FEWEST, min(MOST, int(block_seconds / statistics.median(seconds))))


@contextlib.contextmanager
def _told(one: Implementation, n_ranks: int, result: Result, turns: dict[str, Any]) -> Iterator[None]:
    """Turn the failure of one implementation into a sentence; it leaves the turns, and its ranks end."""
    try:
        yield
    except (TfdisteduError, OSError) as error:
        text = f"with {n_ranks} ranks: {str(error).splitlines()[0]}"
        if one.name in turns:
            result.failed.setdefault(one.name, text)
            turns.pop(one.name).close()
        elif isinstance(error, MachineCannot):
            result.missing[one.name] = str(error)
        else:  # of ours, all is here; a peer that does not start is as good as none
            (result.missing if one.is_peer else result.failed).setdefault(one.name, text)
