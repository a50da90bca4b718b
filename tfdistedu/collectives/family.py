"""What else is there beside all-reduce? Its two halves, and the two collectives with a root, on the plain executor.

The idea: the same ten lines run other schedules; only what the ranks start with and what they take away differs.

    before                reduce_scatter     all_gather      broadcast      reduce
    rank 0: a0 a1         a0+b0              a  b            a              a+b
    rank 1: b0 b1         a1+b1              a  b            a              nothing     (root 0)

Costs: see `tfdistedu.collectives.cost`; reduce-scatter and all-gather are half an all-reduce each.

Leaves out: all-to-all, and gathering to one rank only.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfdistedu.collectives.algorithms import find, ring_all_gather, ring_reduce_scatter, tree_broadcast, tree_reduce
from tfdistedu.collectives.arrays import as_arrays, as_outputs, deliver
from tfdistedu.collectives.executor import execute, proven, reduce_buffers
from tfdistedu.collectives.schedule import chunk_bounds
from tfdistedu.collectives.trace import Record


def reduce_scatter(
    arrays: Sequence[Any],
    algorithm: Any = ring_reduce_scatter,
    op: str = "sum",
    out: Sequence[np.ndarray] | None = None,
    trace: list[Record] | None = None,
) -> list[np.ndarray]:
    """Reduce one array a rank, and give rank r chunk r of the flattened result.

    Args:
        arrays: One array a rank, all of one shape and type. They are not changed.
        algorithm: A name, a function from `n_ranks` to a schedule, or a schedule. It is verified.
        op: "sum", "mean", "min" or "max".
        out: One array a rank, one-dimensional, of the size of its chunk (see `chunk_bounds`). `None` makes new ones.
        trace: One record for each transfer is appended here.

    Returns:
        One array a rank, one-dimensional: elements `bounds[r]` up to `bounds[r + 1]` of the result.

    Raises:
        BadInput: Arrays do not fit each other, the type has no such reduction, or a sum of integers does not fit.
        BrokenSchedule: The schedule is no reduce-scatter.

    Example:
        >>> reduce_scatter([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
        [array([11.]), array([22., 33.])]

    """
    given = as_arrays(arrays)
    schedule = proven(algorithm, len(given), "reduce_scatter")
    bounds = chunk_bounds(given[0].size, len(given))
    slices = [slice(a, b) for a, b in itertools.pairwise(bounds)]
    results = as_outputs(out, [(part.stop - part.start,) for part in slices], given[0].dtype)
    totals = reduce_buffers(schedule, given, op, trace, slices)
    return deliver(totals, results)


def reduce(
    arrays: Sequence[Any],
    root: int = 0,
    algorithm: Any = tree_reduce,
    op: str = "sum",
    trace: list[Record] | None = None,
) -> np.ndarray:
    """Reduce one array a rank, and give the result to the root alone.

    Args:
        arrays: One array a rank, all of one shape and type. They are not changed.
        root: The rank that gets the result.
        algorithm: A name, a function of (`n_ranks`, `root`) that returns a schedule, or a schedule. It is verified.
        op: "sum", "mean", "min" or "max".
        trace: One record for each transfer is appended here.

    Returns:
        The root's array, of the inputs' shape and type.

    Raises:
        BadInput: Arrays do not fit each other, the type has no such reduction, or a sum of integers does not fit.
        BrokenSchedule: The schedule is no reduce to this root.

    Example:
        >>> reduce([[1, 2], [10, 20], [100, 200]], root=1)
        array([111, 222])

    """
    given = as_arrays(arrays)
    schedule = proven(_rooted(algorithm, root, "reduce"), len(given), "reduce", root)
    everything = [slice(0, given[0].size if rank == root else 0) for rank in range(len(given))]
    return reduce_buffers(schedule, given, op, trace, everything)[root].reshape(given[0].shape)


def all_gather(
    arrays: Sequence[Any], algorithm: Any = ring_all_gather, trace: list[Record] | None = None
) -> list[np.ndarray]:
    """Give every rank all arrays, one behind the other along the first axis.

    Args:
        arrays: One array a rank, all of one type; their lengths along the first axis may differ (a rank may have none),
            the other axes agree. Numbers (0-d arrays) count as arrays of length 1.
        algorithm: A name, a function from `n_ranks` to a schedule, or a schedule. It is verified.
        trace: One record for each transfer is appended here.

    Returns:
        One array a rank: what `np.concatenate` gives.

    Raises:
        BadInput: Arrays do not fit each other.
        BrokenSchedule: The schedule is no all-gather.

    Example:
        >>> all_gather([[1, 2], [], [3]])
        Traceback (most recent call last):
        ...
        tfdistedu.errors.BadInput: rank 1 has type float64, and rank 0 has int64: all ranks must have the same.
        >>> all_gather([[1, 2], np.array([], int), [3]])[1]
        array([1, 2, 3])

    """
    given = as_arrays(arrays, ragged=True)
    schedule = proven(algorithm, len(given), "all_gather")
    whole = np.concatenate(given)
    ends = np.cumsum([0, *(array.size for array in given)]).tolist()
    buffers = [np.zeros(whole.size, given[0].dtype) for _ in given]
    for rank, array in enumerate(given):
        buffers[rank][ends[rank] : ends[rank + 1]] = array.reshape(-1)
    execute(schedule, buffers, bounds=ends, trace=trace)
    return [buffer.reshape(whole.shape) for buffer in buffers]


def broadcast(
    arrays: Sequence[Any], root: int = 0, algorithm: Any = tree_broadcast, trace: list[Record] | None = None
) -> list[np.ndarray]:
    """Give every rank a copy of the root's array.

    Args:
        arrays: One array a rank, all of one shape and type. They are not changed; of the others only shape and type
            are looked at.
        root: The rank whose array all get.
        algorithm: A name, a function of (`n_ranks`, `root`) that returns a schedule, or a schedule. It is verified.
        trace: One record for each transfer is appended here.

    Returns:
        One array a rank; no two share memory.

    Raises:
        BadInput: Arrays do not fit each other, or the root is no rank.
        BrokenSchedule: The schedule is no broadcast from this root.

    Example:
        >>> broadcast([[1.0, 2.0], [0.0, 0.0]])
        [array([1., 2.]), array([1., 2.])]

    """
    given = as_arrays(arrays)
    schedule = proven(_rooted(algorithm, root, "broadcast"), len(given), "broadcast", root)
    buffers = [array.flatten() for array in given]
    execute(schedule, buffers, trace=trace)
    return [buffer.reshape(given[0].shape) for buffer in buffers]


def _rooted(algorithm: Any, root: int, goal: str) -> Any:
    """Return the algorithm with its root given, where it is a name or a function."""
    if isinstance(algorithm, str):
        algorithm = find(algorithm, goal)
    if not callable(algorithm) or root == 0:
        return algorithm
    return functools.partial(algorithm, root=root)
