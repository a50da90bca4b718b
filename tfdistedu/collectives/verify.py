"""Is a schedule right, for all numbers that it could ever be given? Run it once on things that are no numbers.

The idea: instead of numbers, each chunk carries a *term*: who has been added to it, and in which tree of additions.

    round 1   rank 0 holds a, gets b:   a + b             contributors: 0 once, 1 once
    round 2   rank 0 gets c + d:        (a + b) + (c + d)   contributors: all once, so this is the sum

Two questions, and each needs its own answer:

1. Is everybody in it, exactly once? The contributors tell.
2. Do all ranks hold the same bits? (a + b) + c and a + (b + c) have the same contributors and differ in the last bit of
   a float. Only equal trees give equal bits. a + b and b + a are the same tree: IEEE addition commutes (the payloads of
   NaN excepted), and `tfdistedu.collectives.arithmetic` makes minimum and maximum commute, for signed zeros too.

What each goal starts from and must reach; rank r owns chunk r in between, so all-reduce = reduce-scatter + all-gather:

| goal             | before               | after                                            |
|------------------|----------------------|--------------------------------------------------|
| `all_reduce`     | each holds its own   | each holds the same sum of all                   |
| `reduce_scatter` | each holds its own   | rank r holds the sum of chunk r                  |
| `all_gather`     | rank r holds chunk r | each holds every chunk of its owner              |
| `broadcast`      | the root holds all   | each holds what the root had                     |
| `reduce`         | each holds its own   | the root holds the sum of all                    |

Costs: one step for each transfer; the ring of 200 ranks (79,600 transfers) takes about half a second.

Leaves out: time. That ranks run at different speeds is the planner's business, see `tfdistedu.collectives.plan`.
"""

from __future__ import annotations

from tfdistedu.collectives.rules import BrokenSchedule, check_rules
from tfdistedu.collectives.schedule import Schedule
from tfdistedu.collectives.terms import Term, Terms, check_goal

__all__ = ["BrokenSchedule", "verify"]


def verify(schedule: Schedule, goal: str = "all_reduce", root: int = 0) -> None:
    """Prove that a schedule keeps the rules, reaches its goal, and leaves the same bits on all ranks.

    Args:
        schedule: The schedule.
        goal: What it is for: all_reduce, reduce_scatter, all_gather, broadcast or reduce.
        root: Where a broadcast starts and a reduce ends; the other goals have no root.

    Raises:
        BrokenSchedule: It breaks a rule or misses its goal. The error carries round, rank, chunk, who is missing and
            who is twice.
        BadInput: The goal is unknown or does not fit the schedule's shape.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> verify(ring(5))
        >>> verify(Schedule("half a ring", 5, 5, ring(5).rounds[:4]), goal="reduce_scatter")

    """
    check_rules(schedule)
    check_goal(schedule, goal, root)
    terms = Terms.start(schedule, goal, root)
    for index, transfers in enumerate(schedule.rounds):
        terms.play(index, transfers, schedule.name)
    for chunk in range(schedule.n_chunks):
        ends = [
            r
            for r in range(schedule.n_ranks)
            if goal not in ("reduce_scatter", "reduce") or r == _end(goal, chunk, root)
        ]
        for rank in ends:
            _check_contributors(schedule, terms, rank, chunk, _wanted(schedule, goal, chunk, root))
        for rank in ends[1:]:
            _check_same_tree(schedule, terms, ends[0], rank, chunk)


def _end(goal: str, chunk: int, root: int) -> int:
    """Return the one rank that must hold this chunk at the end of a reduce-scatter or a reduce."""
    return chunk if goal == "reduce_scatter" else root


def _wanted(schedule: Schedule, goal: str, chunk: int, root: int) -> int:
    """Return who must be in this chunk at the end: bit r is rank r."""
    return {"all_gather": 1 << chunk, "broadcast": 1 << root}.get(goal, (1 << schedule.n_ranks) - 1)


def _ranks(bits: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set."""
    return tuple(r for r in range(bits.bit_length()) if bits >> r & 1)


def _named(ranks: tuple[int, ...]) -> str:
    """Write ranks as in a sentence: "rank 1", "ranks 1, 2", "ranks 0, 1, 2 and 61 more"."""
    shown = ", ".join(map(str, ranks[:8])) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


def _check_contributors(schedule: Schedule, terms: Terms, rank: int, chunk: int, wanted: int) -> None:
    """Raise when somebody is missing or twice in what this rank holds at the end."""
    term, last = terms.held[rank][chunk], terms.last[rank][chunk]
    once, more = (0, 0) if term is None else (term.once, term.more)
    if once == wanted and not more:
        return
    missing, twice = _ranks(wanted & ~once), _ranks(more)
    says = []
    if missing:
        says.append(f"lacks the part of {_named(missing)}")
    if twice:
        says.append(f"counts {_named(twice)} more than once")
    text = f"{schedule.name}: at the end, rank {rank} {' and '.join(says)} in chunk {chunk}."
    if twice:
        last, where = _first_doubled(term)
        text += (
            f" It goes wrong in round {last}, where rank {where} adds a part that it already has. A finished sum "
            "must replace (reduce=False), and no part may be sent twice."
        )
    elif last is None:
        text += f" Nothing ever arrives there. Check who should send this chunk to rank {rank}."
    else:
        senders = tuple(t.src for t in schedule.rounds[last] if (t.dst, t.chunk) == (rank, chunk))
        text += (
            f" The last to write there: {_named(senders)}, in round {last}. Either these parts were not there, "
            "or a take-over replaced them, or a round is missing."
        )
    raise BrokenSchedule(text, last, rank, chunk, missing, twice)


def _first_doubled(term: Term) -> tuple[int, int]:
    """Return the round and the rank in which a part was first added to a sum that had it already."""
    while True:
        deeper = [side for side in (term.left, term.right) if side is not None and side.more]
        if not deeper:
            return term.round, term.rank
        term = min(deeper, key=lambda side: side.round)


def _check_same_tree(schedule: Schedule, terms: Terms, first: int, rank: int, chunk: int) -> None:
    """Raise when two ranks hold the same contributors, added in different orders."""
    a, b = terms.held[first][chunk], terms.held[rank][chunk]
    if a is b:
        return
    orders = (
        f"rank {first} adds {a!r}, rank {rank} adds {b!r}" if a.size <= 16 else f"their trees of {a.size} parts differ"
    )
    raise BrokenSchedule(
        f"{schedule.name}: at the end, ranks {first} and {rank} both hold every part of chunk {chunk} once, but added "
        f"in different orders, so they differ in the last bits: {orders}. Let one rank add and the others take over.",
        terms.last[rank][chunk],
        rank,
        chunk,
    )
