"""Where does each value lie while a rank runs its plan, so that nothing is copied that need not be?

A plan speaks of slots: places in a rank's *window*, which others read. But a chunk is often not sent at all before its
first arrival, or never after its last; then the caller's own arrays do:

    x (the caller's input)  --load, if it is sent before anything arrives-->  slot
    slot or x               --reduce with what arrives----------------------> slot, or `out` if it is sent no more
    slot                    --store, if it was sent after its last arrival--> out

    direct, rank 0 of 2:   load chunk 1 (rank 1 reads it) · slot 0 = x[0] + theirs · out[1] = theirs · out[0] = slot 0

Costs: one look at each message, once for a plan. Leaves out: bytes and bounds (`tfdistedu.links.pieces`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfdistedu.collectives.plan import Message, Plan

X, OUT = -1, -2
"""Places that are no slot: the caller's input, and the caller's output."""


class Landing(NamedTuple):
    """What happens to neighbouring chunks of one message that arrive.

    Attributes:
        first: The first chunk.
        stop: The chunk after the last one.
        own: Where this rank's value lies: a slot, or `X`. Of no use without `reduce`.
        to: Where the result goes: a slot, or `OUT`.
    """

    first: int
    stop: int
    own: int
    to: int


class Store(NamedTuple):
    """Neighbouring chunks that are copied at the end.

    Attributes:
        first: The first chunk.
        stop: The chunk after the last one.
        place: Where they lie: a slot, or `X`.
    """

    first: int
    stop: int
    place: int


@dataclass(frozen=True)
class Moves:
    """What one rank copies and where its results land.

    Attributes:
        loads: (first, stop) of chunks that are copied from `x` into slot 0 at the start.
        landings: For each step, for each message that it takes: its landings.
        stores: What is copied into `out` at the end.

    """

    loads: tuple[tuple[int, int], ...]
    landings: tuple[tuple[tuple[Landing, ...], ...], ...]
    stores: tuple[Store, ...]


def make_moves(plan: Plan, rank: int, in_place: bool = False) -> Moves:
    """Find the shortest ways for one rank.

    Args:
        plan: The plan.
        rank: The rank.
        in_place: The caller's array is slot 0 itself, and is the output too.

    Returns:
        Its moves.

    Example:
        >>> from tfdistedu.collectives.algorithms import direct
        >>> from tfdistedu.collectives.plan import make_plan
        >>> moves = make_moves(make_plan(direct(2)), rank=0)
        >>> moves.loads, moves.landings[0], moves.stores
        (((1, 2),), ((Landing(first=0, stop=1, own=-1, to=0),),), (Store(first=0, stop=1, place=0),))

    """
    steps, chunks = plan.steps[rank], range(plan.schedule.n_chunks)
    # Step 1: when is each chunk sent, and when does something arrive for it?
    sent: list[list[int]] = [[] for _ in chunks]
    taken: list[list[tuple[int, int]]] = [[] for _ in chunks]
    for step in steps:
        for message in step.sends:
            for chunk in range(message.first, message.stop):
                sent[chunk].append(step.round)
        for index, message in enumerate(step.takes):
            for chunk in range(message.first, message.stop):
                taken[chunk].append((step.round, index))
    first_take = [each[0][0] if each else len(steps) for each in taken]
    # Step 2: load what is sent no later than something arrives: the round reads what stood at its start.
    load = [not in_place and bool(sent[c]) and sent[c][0] <= first_take[c] for c in chunks]
    # Step 3: what is never sent after its last arrival lands in `out` at once. In place, slot 0 is the output.
    lands = [not in_place and bool(taken[c]) and not (sent[c] and sent[c][-1] > taken[c][-1][0]) for c in chunks]

    def landing(round_: int, index: int, message: Message, chunk: int) -> tuple[int, int]:
        first = taken[chunk][0] == (round_, index)
        own = X if first and not load[chunk] and not in_place else message.own_slot
        return own, OUT if lands[chunk] and taken[chunk][-1] == (round_, index) else message.out_slot

    landings = tuple(
        tuple(
            tuple(
                Landing(first, stop, *places)
                for first, stop, places in _runs(
                    range(message.first, message.stop), lambda c, s=step, i=i, m=message: landing(s.round, i, m, c)
                )
            )
            for i, message in enumerate(step.takes)
        )
        for step in steps
    )

    # Step 4: store the rest.
    def store(chunk: int) -> int | None:
        if lands[chunk]:
            return None
        place = plan.final_slot[rank][chunk] if taken[chunk] else X
        return None if in_place and place in (X, 0) else place

    stores = tuple(Store(*run) for run in _runs(chunks, store) if run[2] is not None)
    return Moves(tuple(run[:2] for run in _runs(chunks, load.__getitem__) if run[2]), landings, stores)


def _runs(chunks: range, key: Callable[[int], Any]) -> list[tuple[int, int, Any]]:
    """Join neighbouring chunks with the same key into (first, stop, key)."""
    result: list[tuple[int, int, Any]] = []
    for chunk in chunks:
        value = key(chunk)
        if result and result[-1][2] == value:
            result[-1] = (result[-1][0], chunk + 1, value)
        else:
            result.append((chunk, chunk + 1, value))
    return result
