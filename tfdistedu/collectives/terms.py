"""What does a chunk hold after each round, whatever the numbers are? Who was added to it, and in which tree.

The idea: play the schedule with *terms* instead of numbers. A term is a leaf (one rank's own part) or a sum of two
terms; a + b and b + a are one and the same object, so that two terms are equal exactly when they are one object.

    round 0    rank 0:  0        rank 1:  1        rank 2:  2
    round 1    rank 0: (0 + 1)   rank 1:  1        rank 2:  2              1 -> 0, added
    round 2    rank 0: ((0 + 1) + 2)                                       2 -> 0, added

Costs: one small tuple for each addition; who is in a term is the bits of one Python integer.

Leaves out: judging what comes out; see `tfdistedu.collectives.verify`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tfdistedu.collectives.rules import BrokenSchedule, check_rules
from tfdistedu.collectives.schedule import GOALS, Schedule, Transfer
from tfdistedu.errors import BadInput


class Term(NamedTuple):
    """What a chunk holds: a tree of additions, and who is in it.

    Attributes:
        left: The left one of the two terms that were added; `None` in a leaf.
        right: The right one; `None` in a leaf.
        once: Who is in it, at least once: bit r is rank r.
        more: Who is in it more than once.
        round: In which round it was added; -1 in a leaf.
        rank: Where it was added; in a leaf, whose part it is.
        size: How many parts are in it, counted as often as they are in it.
        number: Which term it is; equal trees have one number.
    """

    left: Term | None
    right: Term | None
    once: int
    more: int
    round: int
    rank: int
    size: int
    number: int

    def __repr__(self) -> str:
        """Write the tree as a sum of ranks: `((0 + 1) + 2)`."""
        return str(self.rank) if self.left is None else f"({self.left!r} + {self.right!r})"


@dataclass
class Terms:
    """The chunks of all ranks while a schedule runs on terms; equal trees are one object, so `is` compares them.

    Attributes:
        held: `held[rank][chunk]` is a term, or `None` where there is nothing yet.
        last: `last[rank][chunk]` is the last round that wrote there, or `None`.
    """

    held: list[list[Term | None]]
    last: list[list[int | None]]
    _known: dict[tuple[int, int], Term] = field(default_factory=dict)

    @classmethod
    def start(cls, schedule: Schedule, goal: str, root: int = 0) -> Terms:
        """Return what the ranks hold before the first round of a schedule with this goal."""
        leaves = [Term(None, None, 1 << r, 0, -1, r, 1, number=r) for r in range(schedule.n_ranks)]

        def holds(rank: int, chunk: int) -> bool:
            return {"all_gather": rank == chunk, "broadcast": rank == root}.get(goal, True)

        ranks, chunks = range(schedule.n_ranks), range(schedule.n_chunks)
        held = [[leaves[r] if holds(r, c) else None for c in chunks] for r in ranks]
        return cls(held, [[None] * schedule.n_chunks for _ in ranks])

    def add(self, left: Term, right: Term, round: int, rank: int) -> Term:
        """Return the term left + right, the same object as for right + left."""
        key = (min(left.number, right.number), max(left.number, right.number))
        term = self._known.get(key)
        if term is None:
            more = left.more | right.more | (left.once & right.once)
            number = len(self.held) + len(self._known)
            term = Term(left, right, left.once | right.once, more, round, rank, left.size + right.size, number)
            self._known[key] = term
        return term

    def play(self, round: int, transfers: tuple[Transfer, ...], name: str) -> None:
        """Play one round: read everything, then land everything in the listed order."""
        arriving = [self.held[t.src][t.chunk] for t in transfers]
        for t, term in zip(transfers, arriving, strict=True):
            mine = self.held[t.dst][t.chunk]
            if term is None or (t.reduce and mine is None):
                raise BrokenSchedule(
                    f"{name}, round {round}: rank {t.src} sends chunk {t.chunk} to rank {t.dst}, but rank "
                    f"{t.src if term is None else t.dst} holds nothing there yet. It must arrive in an earlier round.",
                    round,
                    t.src if term is None else t.dst,
                    t.chunk,
                )
            self.held[t.dst][t.chunk] = self.add(mine, term, round, t.dst) if t.reduce else term
            self.last[t.dst][t.chunk] = round


def check_goal(schedule: Schedule, goal: str, root: int = 0) -> None:
    """Refuse a goal that there is not, or that does not fit the schedule's shape.

    Args:
        schedule: The schedule.
        goal: The goal's name.
        root: The root of a broadcast or reduce.

    Raises:
        BadInput: The goal is unknown, the root is no rank, or chunks cannot be owned because there are not as many as
            ranks.

    """
    if goal not in GOALS:
        raise BadInput(f"{goal!r} is no goal of a schedule; there are {', '.join(GOALS)}.")
    if goal in ("reduce_scatter", "all_gather") and schedule.n_chunks != schedule.n_ranks:
        raise BadInput(
            f"{schedule.name}: a {goal} needs one chunk a rank, for rank r owns chunk r; it has {schedule.n_chunks} "
            f"chunks and {schedule.n_ranks} ranks."
        )
    if not 0 <= root < schedule.n_ranks:
        raise BadInput(f"root {root} is no rank: the {schedule.n_ranks} ranks are called 0 .. {schedule.n_ranks - 1}.")


def contributions(schedule: Schedule, goal: str = "all_reduce", root: int = 0) -> list[list[list[dict[int, int]]]]:
    """Return who is in each chunk of each rank, at the start and after every round; pictures are drawn from it.

    A schedule that keeps the rules and misses its goal is fine here: a picture shows where it goes wrong.

    Args:
        schedule: The schedule.
        goal: What it is for.
        root: The root of a broadcast or reduce.

    Returns:
        `result[k][rank][chunk]` after k rounds: a dictionary from contributor to how often it is in the chunk.

    Raises:
        BrokenSchedule: A rule is broken, or a rank sends what it does not hold.
        BadInput: The goal is unknown or does not fit the schedule's shape.

    Example:
        >>> from tfdistedu.collectives.algorithms import naive
        >>> contributions(naive(2))[1]
        [[{0: 1, 1: 1}], [{1: 1}]]

    """
    check_rules(schedule)
    check_goal(schedule, goal, root)
    terms = Terms.start(schedule, goal, root)
    counts: dict[int, dict[int, int]] = {}

    def snapshot() -> list[list[dict[int, int]]]:
        return [[_count(term, counts) for term in chunks] for chunks in terms.held]

    states = [snapshot()]
    for index, transfers in enumerate(schedule.rounds):
        terms.play(index, transfers, schedule.name)
        states.append(snapshot())
    return states


def _count(term: Term | None, counts: dict[int, dict[int, int]]) -> dict[int, int]:
    """Count the leaves of a tree; what was counted before is remembered."""
    if term is None:
        return {}
    if term.number not in counts:
        if term.left is None:
            counts[term.number] = {term.rank: 1}
        else:
            left, right = _count(term.left, counts), _count(term.right, counts)
            counts[term.number] = {r: left.get(r, 0) + right.get(r, 0) for r in sorted(left.keys() | right.keys())}
    return counts[term.number]
