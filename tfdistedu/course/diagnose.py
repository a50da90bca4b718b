"""Where does a wrong schedule, or a wrong prediction, first go wrong? In words that name round, rank and chunk.

The idea: play the schedule round by round on parts that carry their owner's name, and stop at the first transfer that
cannot be meant: it sends what its rank does not have, goes to somebody else, or never comes.

    round 0   rank 0 --chunk 0--> rank 1      fine: rank 0 owns chunk 0
    round 1   rank 0 --chunk 1--> rank 1      stop: rank 0 holds chunks 0 and 3

Costs: one look at each transfer. Leaves out: the name of a mistake; fingerprints find that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tfdistedu.collectives.executor import execute
from tfdistedu.collectives.rules import BrokenSchedule, check_rules
from tfdistedu.collectives.schedule import Schedule, Transfer
from tfdistedu.collectives.terms import Terms
from tfdistedu.course.wrong import Wrong


def schedule_of(function: Callable[[int], Any], n_ranks: int) -> Schedule:
    """Call a function that makes schedules, and check what it returns.

    Args:
        function: The function under test.
        n_ranks: For how many ranks.

    Returns:
        The schedule, which keeps the rules.

    Raises:
        Wrong: It is no schedule of this shape, or breaks a rule.

    """
    call = f"{function.__name__}({n_ranks})"
    schedule = function(n_ranks)
    if not isinstance(schedule, Schedule):
        raise Wrong(
            f"{call} returns no Schedule.",
            called=call,
            came="None. Is there a return?" if schedule is None else f"a {type(schedule).__name__}",
            expected=f"Schedule(name, {n_ranks}, {n_ranks}, rounds)",
            why="a schedule is what every executor reads: a name, two numbers, and a list of rounds",
        )
    if (schedule.n_ranks, schedule.n_chunks) != (n_ranks, n_ranks):
        raise Wrong(
            f"{call} is for {schedule.n_ranks} ranks and {schedule.n_chunks} chunks.",
            called=call,
            came=f"n_ranks={schedule.n_ranks}, n_chunks={schedule.n_chunks}",
            expected=f"n_ranks={n_ranks}, n_chunks={n_ranks}",
            why="every rank owns one chunk, so there are as many chunks as ranks",
        )
    try:
        check_rules(schedule)
    except BrokenSchedule as broken:
        raise Wrong(f"{call}: {_after_name(schedule, broken)}", called=call) from None
    return schedule


def check_schedule(function: Callable[[int], Any], n_ranks: int) -> Schedule:
    """Check that an all-gather sends only what is there, and that everybody ends with everything.

    Args:
        function: The function under test.
        n_ranks: For how many ranks.

    Returns:
        The schedule.

    Raises:
        Wrong: The message names the first round, rank and chunk that is wrong.

    """
    schedule = schedule_of(function, n_ranks)
    call = f"{function.__name__}({n_ranks})"
    terms = Terms.start(schedule, "all_gather")
    for index, transfers in enumerate(schedule.rounds):
        held = [_held(terms, rank) for rank in range(n_ranks)]
        for t in transfers:
            _check_transfer(call, index, t, held)
        terms.play(index, transfers, schedule.name)
    missing = [[c for c in range(n_ranks) if c not in _held(terms, rank)] for rank in range(n_ranks)]
    for rank, chunks in enumerate(missing):
        if chunks:
            raise Wrong(
                f"{call}: after the last round, rank {rank} lacks {_chunks(chunks)}.",
                called=call,
                came=f"{len(schedule.rounds)} rounds; rank {rank} then holds {_chunks(_held(terms, rank))}",
                expected=f"rank {rank} holds {_chunks(range(n_ranks))}",
                why=f"chunk {chunks[0]} starts at rank {chunks[0]} alone and has to be passed on until all have it",
                symptom=_lacking(missing, n_ranks),
            )
    return schedule


def _lacking(missing: list[list[int]], n_ranks: int) -> str:
    """Say what all ranks have in common, if anything."""
    counts = {len(each) for each in missing}
    if counts == {n_ranks - 1} and all(rank not in chunks for rank, chunks in enumerate(missing)):
        return "every rank ends with its own chunk only"
    return f"every rank lacks {counts.pop()} of {n_ranks} chunks" if len(counts) == 1 else ""


def _check_transfer(call: str, index: int, t: Transfer, held: list[list[int]]) -> None:
    """Refuse one transfer: of what is not there, of what is there already, or one that adds."""
    came = f"round {index}: rank {t.src} --chunk {t.chunk}--> rank {t.dst}" + (", added" if t.reduce else "")
    if t.chunk not in held[t.src]:
        raise Wrong(
            f"{call}, round {index}: rank {t.src} sends chunk {t.chunk} and does not have it yet.",
            called=call,
            came=came,
            expected=f"something that rank {t.src} holds when round {index} starts: {_chunks(held[t.src])}",
            why="a rank owns one chunk, its own number, and can pass on only what came in an earlier round",
        )
    if t.reduce:
        raise Wrong(
            f"{call}, round {index}: rank {t.dst} adds chunk {t.chunk} to what it has, and has nothing finished there.",
            called=call,
            came=came,
            expected=f"rank {t.dst} takes the chunk over",
            why="the sums are finished when the all-gather begins; what stands there before is of no use any more",
        )
    if t.chunk in held[t.dst]:
        raise Wrong(
            f"{call}, round {index}: rank {t.dst} gets chunk {t.chunk} a second time.",
            called=call,
            came=came,
            expected="every chunk comes once to every rank but its owner",
            why="bytes that arrive twice cost as much as those that are needed",
            symptom="more bytes than needed",
        )


def check_traffic(function: Callable[[int], Any], n_ranks: int) -> None:
    """Check that an all-gather is a ring: every rank sends one chunk a round to its right neighbour, n - 1 rounds.

    Args:
        function: The function under test.
        n_ranks: For how many ranks.

    Raises:
        Wrong: The message names the first transfer that goes elsewhere.

    """
    schedule = schedule_of(function, n_ranks)
    call = f"{function.__name__}({n_ranks})"
    for index, transfers in enumerate(schedule.rounds):
        for t in transfers:
            if t.dst != (t.src + 1) % n_ranks:
                raise Wrong(
                    f"{call}, round {index}: rank {t.src} sends to rank {t.dst}, which is not its right neighbour.",
                    called=call,
                    came=f"round {index}: rank {t.src} --chunk {t.chunk}--> rank {t.dst}",
                    expected=f"rank {t.src} --> rank {(t.src + 1) % n_ranks}",
                    why="in this ring all bytes go the same way, so that no link carries more than another",
                    symptom="right values on wrong links",
                )
        counts = [sum(t.src == rank for t in transfers) for rank in range(n_ranks)]
        for rank, count in enumerate(counts):
            if count != 1:
                raise Wrong(
                    f"{call}, round {index}: rank {rank} sends {count} chunks.",
                    called=call,
                    came=f"chunks sent by ranks 0 .. {n_ranks - 1}: {counts}",
                    expected="one chunk from every rank in every round",
                    why="a link that carries more than one chunk in a round makes all others wait",
                )


def check_same_bits(function: Callable[[int], Any], first_half: Schedule, whole: Schedule) -> None:
    """Run a reduce-scatter and the all-gather under test on numbers, and compare with the whole ring.

    Args:
        function: The function under test.
        first_half: The reduce-scatter.
        whole: The ring.

    Raises:
        Wrong: The message names the first rank and number that differ.

    """
    n = whole.n_ranks
    for size in (0, 1, n - 1, n, 2 * n + 1):
        start = [(rank + 1) / (3.0 + np.arange(size)) for rank in range(n)]
        mine, right = [array.copy() for array in start], [array.copy() for array in start]
        execute(first_half + schedule_of(function, n), mine)
        execute(whole, right)
        for rank in range(n):
            if mine[rank].tobytes() != right[rank].tobytes():
                where = int(np.flatnonzero(mine[rank] != right[rank])[0])
                raise Wrong(
                    f"with {n} ranks and {size} numbers, rank {rank} ends with a wrong number at index {where}.",
                    called=f"reduce-scatter, then {function.__name__}({n})",
                    came=repr(float(mine[rank][where])),
                    expected=repr(float(right[rank][where])),
                    why="after both halves every rank holds the whole sum, with the same bits",
                )


def check_prediction(function: Callable[[], Any], right: dict[str, int], run: str) -> None:
    """Check a prediction, and never print the answer.

    Args:
        function: The function under test; it takes nothing and returns a dictionary.
        right: What a run gives.
        run: The command that shows it.

    Raises:
        Wrong: The message names the first number that is wrong, and the run that shows the right one.

    """
    call, guess = f"{function.__name__}()", function()
    if not isinstance(guess, dict) or set(guess) != set(right):
        raise Wrong(
            f"{call} has to return a dictionary with the keys {', '.join(right)}.",
            called=call,
            came=repr(guess),
        )
    for key, answer in right.items():
        try:
            given = operator.index(guess[key])
        except TypeError:
            raise Wrong(f"{key} is a whole number, and yours is {guess[key]!r}.", called=call) from None
        if given != answer:
            raise Wrong(
                f"{key}: the run says otherwise than {given}.",
                called=call,
                came=f"{key} = {given}",
                expected=f"what you count in the run: {run}",
            )


def _held(terms: Terms, rank: int) -> list[int]:
    """Return the chunks that a rank holds."""
    return [chunk for chunk, term in enumerate(terms.held[rank]) if term is not None]


def _chunks(chunks: Any) -> str:
    """Write chunks as in a sentence."""
    names = [str(chunk) for chunk in chunks]
    return f"chunk {names[0]}" if len(names) == 1 else f"chunks {', '.join(names[:-1])} and {names[-1]}"


def _after_name(schedule: Schedule, broken: BrokenSchedule) -> str:
    """Return a broken rule's message without the schedule's name."""
    return str(broken).removeprefix(schedule.name).lstrip(":, ")
