"""How does one rank run its plan quickly? The same steps as `run_steps`, cut in pieces, with nothing copied in vain.

    for each piece:   open    the slots of this piece
                      load    what is sent before anything arrives
                      for each step:  give, then wait for the readers of what will be written
                                      for each message:  take it, and land it (reduce, or copy)
                      store   what does not lie in `out` yet

What the loop needs to know about a piece (slices, operands, places) is worked out once and kept: a call of a size that
was seen before does little but wait, add and copy.

Costs: about ten microseconds of Python a call of two rounds. Leaves out: how to wait and how bytes travel; that is the
link's, `tfdistedu.links.shared_memory` or `tfdistedu.links.tcp`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from tfdistedu.collectives.plan import Plan, Step
from tfdistedu.links.moves import OUT, X, make_moves

_TEXT_BYTES = 248


class Text(NamedTuple):
    """What is called: in words, as the bytes that others see, and as a number that they compare."""

    words: str
    data: bytes
    digest: int


def text_of(words: str) -> Text:
    """Make it from words.

    Args:
        words: What is called, with all that has to be the same on all ranks.

    Returns:
        Words, the first bytes of them, and a digest of all.

    """
    data = words.encode()
    return Text(words, data[:_TEXT_BYTES], int.from_bytes(hashlib.blake2b(data, digest_size=7).digest(), "big"))


class Land(NamedTuple):
    """One landing with its slices.

    Attributes:
        part: Which part of the message that arrives.
        own: Where this rank's operand lies: a slot, or `X`.
        to: Where the result goes: a slot, or `OUT`.
        here: The same elements, in slots, input and output.
        reduce: Whether it is reduced.
        left: Whether what arrives is the left operand.
    """

    part: slice
    own: int
    to: int
    here: slice
    reduce: bool
    left: bool


class Arrival(NamedTuple):
    """One message that this rank takes.

    Attributes:
        src: The rank that sends it.
        slot: The sender's slot.
        where: Its elements.
        whole: Where it goes as it is, when all of it is taken over to one place; otherwise `None`.
        lands: What happens to its parts.
    """

    src: int
    slot: int
    where: slice
    whole: int | None
    lands: tuple[Land, ...]


class Leaving(NamedTuple):
    """One message that this rank gives.

    Attributes:
        dst: Who takes it.
        slot: The slot in which it lies.
        where: Its elements.
    """

    dst: int
    slot: int
    where: slice


class Round(NamedTuple):
    """One step of a program.

    Attributes:
        index: The round.
        sends: What is given.
        readers: The (rank, round) that must have finished before anything is written.
        takes: What is taken.
    """

    index: int
    sends: tuple[Leaving, ...]
    readers: tuple[tuple[int, int], ...]
    takes: tuple[Arrival, ...]


class Program(NamedTuple):
    """All that a rank does for one piece.

    Attributes:
        size: Elements of the piece.
        n_slots: Slots that it needs.
        n_rounds: Number of rounds.
        loads: Which elements are copied from the input into slot 0.
        rounds: What happens.
        stores: (elements, slot or `X`) that are copied into the output at the end.
        release: The (rank, round) that must have finished before the slots are written again.
    """

    size: int
    n_slots: int
    n_rounds: int
    loads: tuple[slice, ...]
    rounds: tuple[Round, ...]
    stores: tuple[tuple[slice, int], ...]
    release: tuple[tuple[int, int], ...]


@functools.lru_cache(maxsize=256)
def compile_piece(plan: Plan, rank: int, bounds: tuple[int, ...], in_place: bool) -> Program:
    """Work out what a rank does for a piece.

    Args:
        plan: The plan.
        rank: The rank.
        bounds: Where the piece's chunks begin and end.
        in_place: The caller's array is slot 0.

    Returns:
        The program.

    """
    moves = make_moves(plan, rank, in_place)

    def elements(first: int, stop: int) -> slice:
        return slice(bounds[first], bounds[stop])

    def round_of(step: Step, landings: Any) -> Round:
        takes = []
        for message, parts in zip(step.takes, landings, strict=True):
            base = bounds[message.first]
            lands = tuple(
                Land(
                    slice(bounds[each.first] - base, bounds[each.stop] - base),
                    each.own,
                    each.to,
                    elements(each.first, each.stop),
                    message.reduce,
                    message.left,
                )
                for each in parts
            )
            whole = lands[0].to if len(lands) == 1 and not message.reduce else None
            takes.append(Arrival(message.src, message.src_slot, elements(message.first, message.stop), whole, lands))
        sends = tuple(Leaving(m.dst, m.src_slot, elements(m.first, m.stop)) for m in step.sends)
        return Round(step.round, sends, tuple((w.rank, w.round) for w in step.readers), tuple(takes))

    steps = plan.steps[rank]
    return Program(
        bounds[-1],
        plan.n_slots,
        len(steps),
        tuple(elements(*load) for load in moves.loads),
        tuple(map(round_of, steps, moves.landings)),
        tuple((elements(each.first, each.stop), each.place) for each in moves.stores),
        tuple((wait.rank, wait.round) for wait in plan.release[rank]),
    )


class FastLink(Protocol):
    """What the loop needs of a link."""

    def open(self, program: Program, dtype: np.dtype, start: int, lent: Any) -> list[np.ndarray]:
        """Return this rank's slots for a piece; with `lent`, slot 0 is the caller's buffer."""

    def ready(self) -> None:
        """Let others read slot 0, and go on only if all call the same."""

    def give(self, step: Round, slots: list[np.ndarray]) -> None:
        """Let others take what the step sends; return when what will be written is read."""

    def take(self, step: Round, arrival: Arrival, into: np.ndarray | None) -> np.ndarray:
        """Return a message. It may be put into `into`, which is then returned."""

    def finished(self, step: Round) -> None:
        """Say that this rank has read what it takes in this step."""

    def settle(self, program: Program) -> None:
        """Return when nobody reads this rank's slots any more."""

    def close(self, program: Program) -> None:
        """End the piece."""


def run_piece(
    link: FastLink,
    program: Program,
    x: np.ndarray,
    out: np.ndarray,
    combine: Callable[..., np.ndarray],
    start: int = 0,
    lent: Any = None,
) -> None:
    """Run one piece.

    Args:
        link: The rank's link.
        program: From `compile_piece`.
        x: The piece's input, flat.
        out: The piece's output, flat; may be `x`.
        combine: What a reduction does: a function of (left, right) that returns a new array; `np.add` writes at once.
        start: Where the piece starts in the message.
        lent: The buffer, when the call works in place.

    """
    slots = link.open(program, x.dtype, start, lent)
    for here in program.loads:
        slots[0][here] = x[here]
    link.ready()
    at_once = isinstance(combine, np.ufunc)
    for step in program.rounds:
        link.give(step, slots)
        for arrival in step.takes:
            whole = arrival.whole
            if whole is not None:
                into = (out if whole == OUT else slots[whole])[arrival.where]
                theirs = link.take(step, arrival, into)
                if theirs is not into:
                    into[...] = theirs
                continue
            theirs = link.take(step, arrival, None)
            for part, own, to, here, reduce, left in arrival.lands:
                value = theirs[part]
                into = (out if to == OUT else slots[to])[here]
                if not reduce:
                    into[...] = value
                    continue
                mine = (x if own == X else slots[own])[here]
                one, other = (value, mine) if left else (mine, value)
                if at_once:
                    combine(one, other, out=into)
                else:
                    into[...] = combine(one, other)
        link.finished(step)
    if lent is not None and program.stores:
        link.settle(program)  # the output is slot 0, and others may still read it
    for here, place in program.stores:
        if place != X:
            out[here] = slots[place][here]
        elif out is not x:
            out[here] = x[here]
    link.close(program)
