"""What happened, transfer by transfer? One record each, from a schedule alone or from a run.

The idea: everything that can be asked about a run (who sent how much to whom, in which round) is a sum over records.

    round  src  dst  chunk  reduce  n_bytes
        0    0    1      3    True       40
        0    1    2      0    True       40      ...

Costs: one small tuple for each transfer. Leaves out: time; the plain executor has none worth recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tfdistedu.collectives.schedule import Schedule, Transfer, chunk_bounds
from tfdistedu.errors import BadInput


class Record(NamedTuple):
    """One transfer that happened, or will happen.

    Attributes:
        round: In which round, from 0.
        src: The rank that sends.
        dst: The rank that receives.
        chunk: Which chunk; `None` in a program that does not say.
        reduce: Whether it is reduced into the receiver's chunk; `None` in a program that does not say.
        n_bytes: How many bytes travel.
    """

    round: int
    src: int
    dst: int
    chunk: int | None
    reduce: bool | None
    n_bytes: int


def trace(schedule: Schedule, size: int, itemsize: int) -> list[Record]:
    """Return the records of a schedule without running it.

    Args:
        schedule: The schedule.
        size: Elements in each rank's message.
        itemsize: Bytes an element.

    Returns:
        One record for each transfer, in the listed order: the same that a run appends to its `trace`.

    Raises:
        BadInput: The size is negative.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> trace(ring(2), size=10, itemsize=4)[0]
        Record(round=0, src=0, dst=1, chunk=1, reduce=True, n_bytes=20)

    """
    bounds = chunk_bounds(size, schedule.n_chunks)
    return [
        Record(index, *transfer, (bounds[transfer.chunk + 1] - bounds[transfer.chunk]) * itemsize)
        for index, transfers in enumerate(schedule.rounds)
        for transfer in transfers
    ]


def bytes_per_link(records: Iterable[Record]) -> dict[tuple[int, int], int]:
    """Return how many bytes went from each rank to each other one; who is not in it did not talk.

    Args:
        records: The records of a run.

    Returns:
        From (src, dst) to bytes, sorted.

    Example:
        >>> from tfdistedu.collectives.algorithms import naive
        >>> bytes_per_link(trace(naive(3), size=2, itemsize=4))
        {(0, 1): 8, (0, 2): 8, (1, 0): 8, (2, 0): 8}

    """
    total: Counter[tuple[int, int]] = Counter()
    for record in records:
        total[record.src, record.dst] += record.n_bytes
    return dict(sorted(total.items()))


def as_schedule(records: Iterable[Record], n_ranks: int, n_chunks: int, name: str = "run") -> Schedule:
    """Return the schedule that a run followed, so that a run can be drawn, priced and verified like any other.

    Args:
        records: The records of a run, each with chunk and reduce.
        n_ranks: Number of ranks.
        n_chunks: Number of chunks.
        name: What to call it.

    Returns:
        A schedule; transfers of a round stand in the order of their records.

    Raises:
        BadInput: A record does not say which chunk it is, as those of `send`.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> as_schedule(trace(ring(3), size=9, itemsize=4), 3, 3).rounds == ring(3).rounds
        True

    """
    rounds: dict[int, list[Transfer]] = {}
    for record in records:
        if record.chunk is None or record.reduce is None:
            raise BadInput(f"{record} does not say which chunk it is: only runs of a schedule can be drawn.")
        rounds.setdefault(record.round, []).append(Transfer(*record[1:5]))
    return Schedule(name, n_ranks, n_chunks, [rounds.get(k, []) for k in range(max(rounds, default=-1) + 1)])
