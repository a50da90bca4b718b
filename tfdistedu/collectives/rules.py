"""When may a schedule run at all? When it keeps the rules that every executor relies on.

The idea: what a transfer brings must not depend on who is faster. So everything is read at the start of the round, and
two transfers may write the same chunk of the same rank in one round only if both reduce, in the order listed.

    allowed             1 --a--> 0 <--b-- 2      both reduce:    own + a + b, in the listed order
    allowed             1 --a--> 0               one take-over:  a
    not allowed         1 --a--> 0 <--b-- 2      a take-over and anything else: which one would remain?

Costs: one look at each transfer. Leaves out: whether the schedule is any good; see `tfdistedu.collectives.verify`.
"""

from __future__ import annotations

from tfdistedu.collectives.schedule import Schedule, Transfer
from tfdistedu.errors import BadInput


class BrokenSchedule(BadInput):
    """A schedule breaks a rule or misses its goal.

    Attributes:
        round: The round (from 0) in which it first goes wrong; `None` when a round is missing altogether.
        rank: The rank that then holds something wrong; `None` when the whole round is meant.
        chunk: The chunk that is wrong; `None` when it is no matter of one chunk.
        missing: Ranks whose part is not in the chunk.
        twice: Ranks whose part is in the chunk more than once.

    Example:
        >>> from tfdistedu.collectives.verify import verify
        >>> verify(Schedule("idle", 2, 1, ()))
        Traceback (most recent call last):
        ...
        tfdistedu.collectives.rules.BrokenSchedule: idle: at the end, rank 0 lacks the part of rank 1 in chunk 0. \
Nothing ever arrives there. Check who should send this chunk to rank 0.

    """

    round: int | None
    rank: int | None
    chunk: int | None
    missing: tuple[int, ...]
    twice: tuple[int, ...]

    def __init__(
        self,
        message: str,
        round: int | None = None,
        rank: int | None = None,
        chunk: int | None = None,
        missing: tuple[int, ...] = (),
        twice: tuple[int, ...] = (),
    ) -> None:
        """Keep where it went wrong beside the message.

        Args:
            message: What is wrong, where, and what to do.
            round: See the attributes of this class.
            rank: See the attributes of this class.
            chunk: See the attributes of this class.
            missing: See the attributes of this class.
            twice: See the attributes of this class.

        """
        super().__init__(message)
        self.round, self.rank, self.chunk, self.missing, self.twice = round, rank, chunk, missing, twice


def check_rules(schedule: Schedule) -> None:
    """Check the rules that every executor relies on (see `tfdistedu.collectives.schedule`).

    Args:
        schedule: The schedule.

    Raises:
        BrokenSchedule: A rule is broken; the message says which, and where.

    Example:
        >>> check_rules(Schedule("selfish", 2, 1, [[(1, 1, 0, True)]]))
        Traceback (most recent call last):
        ...
        tfdistedu.collectives.rules.BrokenSchedule: selfish, round 0: rank 1 sends chunk 0 to itself. \
Leave this transfer out: a rank already holds its own.

    """
    n, c = schedule.n_ranks, schedule.n_chunks
    if n < 1 or c < 1:
        raise BrokenSchedule(f"{schedule.name}: {n} ranks and {c} chunks; both must be 1 or more.")
    for index, transfers in enumerate(schedule.rounds):
        seen: set[tuple[int, int, int]] = set()
        landed: dict[tuple[int, int], Transfer] = {}
        for t in transfers:
            first = landed.setdefault((t.dst, t.chunk), t)
            fault = _index_fault(t, n, c) or _landing_fault(t, first, t[:3] in seen)
            if fault:
                rank = t.dst if 0 <= t.src < n else t.src
                raise BrokenSchedule(f"{schedule.name}, round {index}: {fault}", index, rank, t.chunk)
            seen.add(t[:3])


def _index_fault(t: Transfer, n: int, c: int) -> str | None:
    """Return what is wrong with the numbers in a transfer, if anything is."""
    if not (0 <= t.src < n and 0 <= t.dst < n):
        wrong = t.dst if 0 <= t.src < n else t.src
        return f"there is no rank {wrong}; ranks are called 0 .. {n - 1}; is a `% n_ranks` missing?"
    if not 0 <= t.chunk < c:
        return f"there is no chunk {t.chunk}; chunks are called 0 .. {c - 1}; is a `% n_chunks` missing?"
    if t.src == t.dst:
        return f"rank {t.src} sends chunk {t.chunk} to itself. Leave this transfer out: a rank already holds its own."
    return None


def _landing_fault(t: Transfer, first: Transfer, again: bool) -> str | None:
    """Return what is wrong with a transfer beside those that land in the same chunk, if anything is."""
    if again:
        return (
            f"rank {t.src} sends chunk {t.chunk} to rank {t.dst} twice. One of the two must go, or its chunk is "
            "meant to be another."
        )
    if first is not t and not (first.reduce and t.reduce):
        return (
            f"rank {t.dst} takes chunk {t.chunk} over while another transfer ({first.src} and {t.src} send) also "
            "writes it. A round brings one take-over or any number of reductions: move one of the two into another "
            "round."
        )
    return None
