"""What does a schedule look like? Who is in which chunk of which rank, round by round.

The idea: one `Picture` holds what is to be seen: the contributions after every round, and what just changed. It is
drawn as SVG (`tfdistedu.collectives.draw_svg`), in the terminal (`tfdistedu.collectives.draw_terminal`), or written as
JSON. Each rank has a letter and a colour, so that neither eyes for colour nor a colour screen are needed.

    after round 1     rank 0    rank 1    rank 2    rank 3
    chunk 0            A...      .B..     +.BC.      ...D        + just added    = just taken over

A schedule that keeps the rules but misses its goal is drawn as well: that is when a picture is needed most.

Costs: n * n * chunks * rounds letters, so pictures end at 12 ranks. Leaves out: time; all rounds are equally high.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

from tfdistedu.collectives.schedule import Schedule, Transfer
from tfdistedu.collectives.terms import contributions
from tfdistedu.errors import BadInput

MAX_RANKS = 12
"""How many ranks a picture can show; more letters and colours cannot be told apart."""

MAX_CELLS = 40_000
"""How many letters a picture can hold; beyond, no page and no terminal is large enough."""

LETTERS = string.ascii_uppercase[:MAX_RANKS]
"""The letter of each rank."""

COLOURS = (
    "#56b4e9", "#e69f00", "#4cc38a", "#f0e442", "#d98cb8", "#ff8552",
    "#a99bf5", "#b8b8b8", "#72d1c6", "#d4a373", "#a3c644", "#f4a6c0",
)  # fmt: skip
"""The colour of each rank, light enough for black letters (contrast above 7 to 1) on light and dark pages."""


@dataclass(frozen=True)
class Picture:
    """All that is to be seen of a schedule.

    Attributes:
        schedule: The schedule.
        goal: What it is for.
        states: `states[k][rank][chunk]` after k rounds: from contributor to how often it is in the chunk.
        marks: `marks[k][rank, chunk]` is "+" where round k reduced, "=" where it took over.
    """

    schedule: Schedule
    goal: str
    states: list[list[list[dict[int, int]]]]
    marks: list[dict[tuple[int, int], str]]

    @property
    def title(self) -> str:
        """One line: what this is, and how large."""
        s = self.schedule
        return (
            f"{s.name}: {self.goal.replace('_', '-')}, {_many(s.n_ranks, 'rank')}, {_many(s.n_chunks, 'chunk')}, "
            f"{_many(len(s.rounds), 'round')}"
        )


def picture(schedule: Schedule, goal: str = "all_reduce", root: int = 0) -> Picture:
    """Return what is to be seen of a schedule.

    Args:
        schedule: A schedule that keeps the rules, for at most 12 ranks.
        goal: What it is for.
        root: The root of a broadcast or reduce.

    Returns:
        The picture.

    Raises:
        BadInput: There are too many ranks or chunks for a picture, or the goal does not fit.
        BrokenSchedule: A rule is broken, or a rank sends what it does not hold.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> picture(ring(3)).title
        'ring: all-reduce, 3 ranks, 3 chunks, 4 rounds'

    """
    if schedule.n_ranks > MAX_RANKS:
        raise BadInput(
            f"{schedule.n_ranks} ranks are too many for a picture: it can show up to {MAX_RANKS}. As JSON, more are "
            "possible."
        )
    cells = schedule.n_ranks**2 * schedule.n_chunks * (len(schedule.rounds) + 1)
    if cells > MAX_CELLS:
        raise BadInput(f"{schedule.name} would be {cells:,} letters large, too many for a picture: take fewer chunks.")
    marks = [{(t.dst, t.chunk): "+" if t.reduce else "=" for t in transfers} for transfers in schedule.rounds]
    return Picture(schedule, goal, contributions(schedule, goal, root), marks)


def bundles(transfers: tuple[Transfer, ...]) -> list[tuple[int, int, bool, str]]:
    """Return the transfers of a round with all chunks between two ranks taken together.

    Args:
        transfers: One round.

    Returns:
        (src, dst, reduce, chunks), where chunks reads like "0, 2-3".

    Example:
        >>> bundles((Transfer(0, 1, 2, True), Transfer(0, 1, 3, True), Transfer(0, 1, 0, True)))
        [(0, 1, True, '0, 2-3')]

    """
    together: dict[tuple[int, int, bool], list[int]] = {}
    for t in transfers:
        together.setdefault((t.src, t.dst, t.reduce), []).append(t.chunk)
    return [(*key, _ranges(sorted(chunks))) for key, chunks in together.items()]


def describe(transfers: tuple[Transfer, ...]) -> list[str]:
    """Return one sentence for each bundle of a round, for screen readers.

    Args:
        transfers: One round.

    Returns:
        Sentences like "rank 0 sends chunk 3 to rank 1, which adds it".

    Example:
        >>> describe((Transfer(0, 1, 3, True),))
        ['rank 0 sends chunk 3 to rank 1, which adds it']

    """
    sentences = []
    for src, dst, reduce, chunks in bundles(transfers):
        one = chunks.isdigit()
        does = f"{'adds' if reduce else 'takes'} {'it' if one else 'them'}{'' if reduce else ' over'}"
        sentences.append(f"rank {src} sends chunk{'' if one else 's'} {chunks} to rank {dst}, which {does}")
    return sentences


def as_json(schedule: Schedule, goal: str = "all_reduce", root: int = 0) -> dict[str, Any]:
    """Return a schedule, and what its picture shows, as plain data.

    Args:
        schedule: A schedule that keeps the rules.
        goal: What it is for.
        root: The root of a broadcast or reduce.

    Returns:
        name, goal, n_ranks, n_chunks, rounds (each transfer with src, dst, chunk, reduce), and states:
        `states[k][rank][chunk]` is the sorted list of contributors after k rounds, repeated when they are in it more
        than once; `None` for more than 12 ranks.

    Raises:
        BadInput: The goal does not fit.
        BrokenSchedule: A rule is broken, or a rank sends what it does not hold.

    Example:
        >>> from tfdistedu.collectives.algorithms import naive
        >>> as_json(naive(2))["states"][1]
        [[[0, 1]], [[1]]]

    """
    states = None
    if schedule.n_ranks <= MAX_RANKS:
        states = [
            [[[rank for rank, times in held.items() for _ in range(times)] for held in chunks] for chunks in ranks]
            for ranks in contributions(schedule, goal, root)
        ]
    return {
        "name": schedule.name,
        "goal": goal,
        "n_ranks": schedule.n_ranks,
        "n_chunks": schedule.n_chunks,
        "rounds": [[t._asdict() for t in transfers] for transfers in schedule.rounds],
        "states": states,
    }


def _ranges(numbers: list[int]) -> str:
    """Write sorted numbers with neighbours joined: "0, 2-3"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _many(number: int, thing: str) -> str:
    """Write a number of things: "1 rank", "4 ranks"."""
    return f"{number} {thing}" + ("" if number == 1 else "s")
