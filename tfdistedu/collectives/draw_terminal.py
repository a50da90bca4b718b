"""How can a terminal show a schedule, with colour or without, wide or narrow? As letters in columns.

The idea: the picture is a list of lines, each a list of (text, style) pairs; whoever prints it may drop the styles.
Only ASCII is used, so that any terminal and any log can hold it. Ranks that do not fit beside each other go below each
other.

    round 1   0->1 +3   1->2 +0   2->3 +1   3->0 +2
              rank 0    rank 1    rank 2    rank 3
    chunk 0    A...      .B..     +.BC.      ...D

Costs: nothing. Leaves out: arrows; the line beside the round lists them instead.
"""

from __future__ import annotations

import textwrap

from tfdistedu.collectives.draw import COLOURS, LETTERS, Picture, bundles
from tfdistedu.errors import BadInput

Line = list[tuple[str, str]]
"""Pieces of text, each with a style that rich understands ("" for none)."""

_LABEL = 10


def lines(picture: Picture, width: int = 100) -> list[Line]:
    """Return the picture as lines of styled text.

    Args:
        picture: What is to be seen.
        width: How many columns there are.

    Returns:
        The lines, none longer than `width`.

    Raises:
        BadInput: Not even one rank fits beside the labels.

    Example:
        >>> from tfdistedu.collectives.algorithms import naive
        >>> from tfdistedu.collectives.draw import picture
        >>> for line in lines(picture(naive(2)))[2:8]:
        ...     print("".join(text for text, _ in line).rstrip())
        <BLANKLINE>
        start
                    rank 0    rank 1
        chunk 0     A.        .B
        <BLANKLINE>
        round 1     1->0 +0

    """
    n = picture.schedule.n_ranks
    column = max(n + 2, len("rank 10 "))
    fit = (width - _LABEL) // (column + 2)
    if fit < 1:
        raise BadInput(
            f"a terminal of {width} columns is too narrow for this picture: {_LABEL + column + 2} are needed."
        )
    result: list[Line] = [[(part, "bold")] for part in textwrap.wrap(picture.title, width)]
    result += [[(part, "dim")] for part in textwrap.wrap(_legend(n), width)]
    for k, state in enumerate(picture.states):
        result.append([])
        result += _heading(picture, k, width)
        for first in range(0, n, fit):
            result += _block(picture, k, state, range(first, min(first + fit, n)), column)
    return result


def _legend(n: int) -> str:
    """Explain letters and marks in one sentence."""
    last = f" .. {LETTERS[n - 1]} rank {n - 1}" if n > 1 else ""
    return f"{LETTERS[0]} is the part of rank 0{last}; + just added, = just taken over; 0->1 +3: rank 1 adds chunk 3."


def _heading(picture: Picture, k: int, width: int) -> list[Line]:
    """Return the line that says which round this is and who sends what; wrapped."""
    if k == 0:
        return [[("start", "bold")]]
    moves = [
        f"{src}->{dst} {'+' if reduce else '='}{chunks.replace(', ', ',')}"
        for src, dst, reduce, chunks in bundles(picture.schedule.rounds[k - 1])
    ]
    # A transfer is one word for the wrapper, so that it is never torn apart.
    words = [move.replace(" ", "\0") for move in moves]
    wrapped = textwrap.wrap("  ".join(words), max(width - _LABEL - 2, 8), break_on_hyphens=False) or [""]
    label = f"round {k}".ljust(_LABEL + 2)
    return [
        [(label if i == 0 else " " * len(label), "bold"), (part.replace("\0", " "), "")]
        for i, part in enumerate(wrapped)
    ]


def _block(picture: Picture, k: int, state: list[list[dict[int, int]]], ranks: range, column: int) -> list[Line]:
    """Return the chunks of some ranks beside each other, under the ranks' names."""
    names = "".join(f"rank {rank}".ljust(column + 2) for rank in ranks)
    result: list[Line] = [[(" " * (_LABEL + 2), ""), (names.rstrip(), "dim")]]
    marks = picture.marks[k - 1] if k else {}
    for chunk in range(picture.schedule.n_chunks):
        line: Line = [(f"chunk {chunk}".ljust(_LABEL + 1), "dim")]
        for rank in ranks:
            mark = marks.get((rank, chunk), " ")
            line.append((mark, "bold"))
            line += _letters(state[rank][chunk], picture.schedule.n_ranks, bold=mark != " ")
            line.append((" " * (column + 1 - picture.schedule.n_ranks), ""))
        line[-1] = ("", "")
        result.append(line)
    return result


def _letters(held: dict[int, int], n: int, bold: bool) -> Line:
    """Return one place for each rank: its letter, the number of times where it is more than one, or a dot."""
    weight = "bold " if bold else ""
    result: Line = []
    for rank in range(n):
        times = held.get(rank, 0)
        sign = "." if times == 0 else LETTERS[rank] if times == 1 else str(min(times, 9))
        style = "dim" if times == 0 else weight + COLOURS[rank] if times == 1 else "bold reverse red"
        result.append((sign, style))
    return result
