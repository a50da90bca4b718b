"""What does a schedule do to numbers? The plain executor: copy all that travels, then land it. This is the oracle.

The idea, in one picture and in the ten lines of `execute`:

    for each round:   1. copy what every transfer carries        (all read what stood at the round's start)
                      2. land it in the listed order             (reduce into, or replace, the receiver's chunk)

Every fast executor must give the bits of this one. It is slow and can do nothing wrong: one process, one array a rank,
no waiting, no place in memory used for two things.

    arrays of the caller --widen--> buffers, one a rank --execute--> --narrow--> results, one a rank

Costs: one copy of each chunk that travels, beside the additions.

Leaves out: speed, and everything that can go wrong between processes. What types mean is in
`tfdistedu.collectives.arithmetic`; the other collectives are in `tfdistedu.collectives.family`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfdistedu.collectives.algorithms import ring, schedule_for
from tfdistedu.collectives.arithmetic import accumulator, combiner, finish
from tfdistedu.collectives.arrays import as_arrays, as_outputs, deliver
from tfdistedu.collectives.rules import check_rules
from tfdistedu.collectives.schedule import Schedule, arrives_left, chunk_bounds, exchanges
from tfdistedu.collectives.trace import Record
from tfdistedu.collectives.verify import verify
from tfdistedu.errors import BadInput

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]

_verified = functools.lru_cache(maxsize=64)(verify)


def execute(
    schedule: Schedule,
    buffers: Sequence[np.ndarray],
    combine: Combine = np.add,
    bounds: Sequence[int] | None = None,
    trace: list[Record] | None = None,
) -> None:
    """Run a schedule on one buffer a rank, in place. It keeps the rules of a schedule; it need not reach any goal.

    Args:
        schedule: The schedule.
        buffers: One array a rank, one-dimensional, all of one length and type.
        combine: What a reduction does: a function of (left, right) that returns a new array.
        bounds: Where chunks begin and end, `n_chunks + 1` numbers; `None` takes `chunk_bounds`.
        trace: One record for each transfer is appended here.

    Raises:
        BrokenSchedule: The schedule breaks a rule.
        BadInput: The number of buffers or their shapes do not fit.

    Example:
        >>> buffers = [np.array([1.0, 2.0]), np.array([10.0, 20.0])]
        >>> execute(ring(2), buffers)
        >>> buffers
        [array([11., 22.]), array([11., 22.])]

    """
    check_rules(schedule)
    window = _chunks(schedule, buffers, bounds)
    for index, transfers in enumerate(schedule.rounds):
        # Step 1: copy. Everything that travels is what stood at the start of the round.
        arriving = [window[t.src][t.chunk].copy() for t in transfers]
        # Step 2: land. Listed order decides; in an exchange the lower rank's value is left on both sides.
        exchanged = exchanges(transfers)
        for t, value in zip(transfers, arriving, strict=True):
            mine = window[t.dst][t.chunk]
            if t.reduce:
                value = combine(value, mine) if arrives_left(t, exchanged) else combine(mine, value)
            mine[...] = value
            if trace is not None:
                trace.append(Record(index, *t, mine.nbytes))


def _chunks(schedule: Schedule, buffers: Sequence[np.ndarray], bounds: Sequence[int] | None) -> list[list[np.ndarray]]:
    """Return `result[rank][chunk]`, a view into the rank's buffer; refuse buffers and bounds that do not fit."""
    if len(buffers) != schedule.n_ranks or any(buffer.shape != (buffers[0].size,) for buffer in buffers):
        raise BadInput(f"{schedule.name} needs {schedule.n_ranks} one-dimensional buffers of one length.")
    if bounds is None:
        bounds = chunk_bounds(buffers[0].size, schedule.n_chunks)
    if len(bounds) != schedule.n_chunks + 1:
        raise BadInput(f"{schedule.name} has {schedule.n_chunks} chunks, and there are {len(bounds)} bounds.")
    return [[buffer[a:b] for a, b in itertools.pairwise(bounds)] for buffer in buffers]


def all_reduce(
    arrays: Sequence[Any],
    algorithm: Any = ring,
    op: str = "sum",
    out: Sequence[np.ndarray] | None = None,
    trace: list[Record] | None = None,
) -> list[np.ndarray]:
    """Reduce one array a rank, and give every rank the result, all with the same bits.

    Args:
        arrays: One array a rank, all of one shape and type (any shape; read-only and non-contiguous ones too). They are
            not changed, unless they are also in `out`.
        algorithm: A name, a function from `n_ranks` to a schedule, or a schedule. It is verified.
        op: "sum", "mean", "min" or "max"; `tfdistedu.collectives.arithmetic` says what they mean for each type.
        out: One array a rank for the results, of the same shape and type; may be the inputs. `None` makes new ones.
        trace: One record for each transfer is appended here.

    Returns:
        One array a rank, of the inputs' shape and type; no two share memory.

    Raises:
        BadInput: Arrays do not fit each other, the type has no such reduction, or a sum of integers does not fit.
        BrokenSchedule: The schedule is no all-reduce.

    Example:
        >>> all_reduce([[1, 2, 3], [10, 20, 30]], algorithm="tree")
        [array([11, 22, 33]), array([11, 22, 33])]

    """
    given = as_arrays(arrays)
    schedule = proven(algorithm, len(given), "all_reduce")
    results = as_outputs(out, [given[0].shape] * len(given), given[0].dtype)
    totals = reduce_buffers(schedule, given, op, trace)
    return deliver(totals, results)


def proven(algorithm: Any, n_ranks: int, goal: str, root: int = 0) -> Schedule:
    """Return the schedule of this algorithm, verified (once for each schedule).

    Args:
        algorithm: A name, a function from `n_ranks` to a schedule, or a schedule.
        n_ranks: For how many ranks.
        goal: What it must reach.
        root: The root of a broadcast or reduce.

    Returns:
        The schedule.

    Raises:
        BadInput: There is no such algorithm, or it is for another number of ranks.
        BrokenSchedule: It misses its goal.

    """
    schedule = schedule_for(algorithm, n_ranks, goal)
    _verified(schedule, goal, root)
    return schedule


def reduce_buffers(
    schedule: Schedule,
    given: Sequence[np.ndarray],
    op: str,
    trace: list[Record] | None = None,
    parts: Sequence[slice] | None = None,
) -> list[np.ndarray]:
    """Widen, execute, narrow: what all reductions here have in common.

    Args:
        schedule: A schedule that reduces.
        given: One array a rank, from `as_arrays`; they are not changed.
        op: "sum", "mean", "min" or "max".
        trace: One record for each transfer is appended here.
        parts: Which part of each rank's flat result is wanted (and finished); `None` takes all of it.

    Returns:
        One new one-dimensional array a rank, of the type of `given`.

    Raises:
        BadInput: The type has no such reduction, or a sum of integers does not fit.

    """
    dtype = given[0].dtype
    wide = accumulator(dtype, op)
    buffers = [array.astype(wide).reshape(-1) for array in given]
    parts = parts or [slice(None)] * len(given)
    # inf - inf and a float16 that becomes inf are results here, not accidents: they arrive without a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        execute(schedule, buffers, combiner(wide, op), trace=trace)
        return [finish(buffer[part], dtype, op, len(given)) for buffer, part in zip(buffers, parts, strict=True)]
