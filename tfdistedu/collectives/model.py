"""Could a fast executor read a value while it is being overwritten? A model that tries, in one process.

The idea: run all ranks' plans as little machines that read and write shared windows, one small move at a time, in an
order that is drawn. A chunk is two blocks, moved one after the other, so that a *torn* read, half old and half new,
shows up as well. A value is no number but the tree of additions that made it; what comes out must be, block for block,
the tree of the plain executor, for every order that can be drawn.

    rank 0:  copy in | publish | wait rank 1 | block 0 += | block 1 += | publish ...
    rank 1:       copy in | publish | wait rank 0 | block 0 += |    ...                 who moves next: drawn

Several calls run back to back in the same windows, without a barrier between them: a slow reader of one call meets a
fast writer of the next.

Costs: about a hundred moves for a small schedule, half a millisecond.

Leaves out: weak memory order (a processor that shows two writes in the other order); the real links deal with it in the
one function that publishes and waits.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfdistedu.collectives.executor import execute
from tfdistedu.collectives.plan import Plan, Step
from tfdistedu.collectives.schedule import Schedule
from tfdistedu.errors import TfdisteduError

N_BLOCKS = 2
"""Blocks of a chunk, moved one after the other."""

Tree = Any
"""A leaf is (call, rank, chunk); a sum is ("+", left, right): here a + b and b + a differ."""


class Move(NamedTuple):
    """One move of a rank's machine.

    Attributes:
        kind: "wait" for `rank` to have published `count`; "publish" `count`; "load" a leaf; "copy" or "add" a block;
            "keep" a block of the result.
        rank: Whom to wait for, or whose window to read.
        count: The number to publish or to wait for.
        source: (chunk, slot, block) to read in the window of `rank`.
        own: (chunk, slot, block) of the other operand, in the own window.
        target: (chunk, slot, block) to write, in the own window.
        left: Whether what was read is the left operand.
        value: The leaf to load, or the key of the result to keep.
    """

    kind: str
    rank: int = 0
    count: int = 0
    source: tuple[int, int, int] = (0, 0, 0)
    own: tuple[int, int, int] = (0, 0, 0)
    target: tuple[int, int, int] = (0, 0, 0)
    left: bool = False
    value: Any = None


def expected(schedule: Schedule, call: int = 0) -> list[list[Tree]]:
    """Return the tree in each chunk of each rank after the plain executor has run: on trees, not on numbers.

    Args:
        schedule: The schedule.
        call: Which call it is; part of each leaf, so that a value of an earlier call shows.

    Returns:
        `result[rank][chunk]`.

    Example:
        >>> from tfdistedu.collectives.algorithms import naive
        >>> expected(naive(2))
        [[('+', (0, 0, 0), (0, 1, 0))], [('+', (0, 0, 0), (0, 1, 0))]]

    """
    buffers = [np.empty(schedule.n_chunks, dtype=object) for _ in range(schedule.n_ranks)]
    for rank, buffer in enumerate(buffers):
        for chunk in range(schedule.n_chunks):
            buffer[chunk] = (call, rank, chunk)
    execute(schedule, buffers, combine=np.frompyfunc(lambda left, right: ("+", left, right), 2, 1))
    return [buffer.tolist() for buffer in buffers]


def run_model(plans: Sequence[Plan], choose: random.Random) -> list[list[list[list[Tree]]]]:
    """Run calls back to back, in an order of moves that is drawn.

    Args:
        plans: One plan a call, all for the same number of ranks.
        choose: Draws who moves next.

    Returns:
        `result[call][rank][chunk]` is the list of the chunk's blocks as the rank read them at the end of the call.

    Raises:
        TfdisteduError: Nobody can move any more, and not all are done.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> from tfdistedu.collectives.plan import make_plan
        >>> result = run_model([make_plan(ring(3))], random.Random(0))
        >>> all(blocks == [tree] * N_BLOCKS for blocks, tree in zip(result[0][2], expected(ring(3))[2]))
        True

    """
    n_ranks = plans[0].schedule.n_ranks
    machines = [_moves(plans, rank) for rank in range(n_ranks)]
    windows: list[dict[tuple[int, int, int], Tree]] = [{} for _ in range(n_ranks)]
    at, published = [0] * n_ranks, [0] * n_ranks
    kept = [[[[None] * N_BLOCKS for _ in range(p.schedule.n_chunks)] for _ in range(n_ranks)] for p in plans]
    # Fair orders seldom show a race; a drawn preference makes one rank rush ahead or lag behind for a while.
    eager = [choose.random() ** 3 for _ in range(n_ranks)]
    while True:
        able = [
            rank
            for rank in range(n_ranks)
            if at[rank] < len(machines[rank]) and _can_move(machines[rank][at[rank]], published)
        ]
        if not able:
            break
        rank = choose.choices(able, [eager[each] + 0.01 for each in able])[0]
        _do(machines[rank][at[rank]], rank, windows, published, kept)
        at[rank] += 1
    stuck = [rank for rank in range(n_ranks) if at[rank] < len(machines[rank])]
    if stuck:
        raise TfdisteduError(f"deadlock in the model: ranks {stuck} wait for each other.")
    return kept


def _moves(plans: Sequence[Plan], rank: int) -> list[Move]:
    """Return all moves of one rank, for all calls."""
    moves: list[Move] = []
    base, release = 0, ()
    for call, plan in enumerate(plans):
        # `done = 0` of this call is published as base + 1, so that nobody reads a window before its input is there.
        moves += [Move("wait", rank=wait.rank, count=last + 2 + wait.round) for last, wait in release]
        for c in range(plan.schedule.n_chunks):
            moves += [Move("load", target=(c, 0, block), value=(call, rank, c)) for block in range(N_BLOCKS)]
        moves.append(Move("publish", count=base + 1))
        for step in plan.steps[rank]:
            moves += _step_moves(step, base)
        for c, slot in enumerate(plan.final_slot[rank]):
            moves += [Move("keep", source=(c, slot, block), value=(call, rank, c, block)) for block in range(N_BLOCKS)]
        release = [(base, wait) for wait in plan.release[rank]]
        base += 1 + len(plan.schedule.rounds)
    return moves


def _step_moves(step: Step, base: int) -> list[Move]:
    """Return the moves of one step, as `tfdistedu.collectives.plan` says how a rank runs it."""
    moves = [Move("wait", rank=wait.rank, count=base + 2 + wait.round) for wait in step.readers]
    for m in step.takes:
        moves.append(Move("wait", rank=m.src, count=base + 1 + step.round))
        moves += [
            Move(
                "add" if m.reduce else "copy",
                rank=m.src,
                source=(c, m.src_slot, block),
                own=(c, m.own_slot, block),
                target=(c, m.out_slot, block),
                left=m.left,
            )
            for c in range(m.first, m.stop)
            for block in range(N_BLOCKS)
        ]
    return [*moves, Move("publish", count=base + 2 + step.round)]


def _can_move(move: Move, published: list[int]) -> bool:
    """Tell whether a machine can make its next move; only a wait can stop it."""
    return move.kind != "wait" or published[move.rank] >= move.count


def _do(
    move: Move, rank: int, windows: list[dict[tuple[int, int, int], Tree]], published: list[int], kept: Any
) -> None:
    """Make one move."""
    if move.kind == "publish":
        published[rank] = move.count
    elif move.kind == "load":
        windows[rank][move.target] = move.value
    elif move.kind == "keep":
        call, _, chunk, block = move.value
        kept[call][rank][chunk][block] = windows[rank].get(move.source)
    elif move.kind != "wait":
        arriving = windows[move.rank].get(move.source)
        mine = windows[rank].get(move.own)
        added = ("+", arriving, mine) if move.left else ("+", mine, arriving)
        windows[rank][move.target] = added if move.kind == "add" else arriving
