"""Do the caller's arrays fit each other? Said before anything runs, with the rank that does not fit.

The idea: a collective needs one array a rank, all alike. A wrong one found here costs a sentence; found later it costs
a wrong sum or, between processes, a program that waits for ever.

    rank 0: float32 (3, 4)    rank 1: float32 (3, 4)    rank 2: float64 (3, 4)  <-- "rank 2 has type float64, ..."

Costs: nothing that grows with the arrays, but for checking that results do not share memory.

Leaves out: what may be done with each type; see `tfdistedu.collectives.arithmetic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfdistedu.errors import BadInput


def as_arrays(arrays: Sequence[Any], ragged: bool = False) -> list[np.ndarray]:
    """Return one NumPy array a rank, all of one type and shape; nothing is copied that is an array already.

    Args:
        arrays: One array (or anything that `np.asarray` takes) a rank.
        ragged: Lengths along the first axis may differ, and numbers become arrays of length 1.

    Returns:
        The arrays, in the order of the ranks.

    Raises:
        BadInput: There is no rank, or ranks differ; the message names the first that differs from rank 0.

    Example:
        >>> as_arrays([[1.0], [2.0, 3.0]])
        Traceback (most recent call last):
        ...
        tfdistedu.errors.BadInput: rank 1 has shape (2,), and rank 0 has (1,): all ranks must have the same.

    """
    given = [_as_array(array, rank) for rank, array in enumerate(_as_list(arrays))]
    if not given:
        raise BadInput("there is no rank: give one array for each rank, at least one.")
    if ragged:
        given = [np.atleast_1d(array) for array in given]
    start = 1 if ragged else 0
    for rank, array in enumerate(given):
        for what, mine, first in (
            ("type", array.dtype, given[0].dtype),
            ("shape", array.shape[start:], given[0].shape[start:]),
        ):
            if mine != first:
                raise BadInput(f"rank {rank} has {what} {mine}, and rank 0 has {first}: all ranks must have the same.")
    return given


def _as_list(arrays: Any) -> list[Any]:
    """Return what stands for each rank, or say that this is no sequence."""
    try:
        return list(arrays)
    except TypeError:
        raise BadInput(f"give a list with one array for each rank, not {arrays!r}.") from None


def _as_array(array: Any, rank: int) -> np.ndarray:
    """Return one rank's array, or say why it is none."""
    if isinstance(array, np.ma.MaskedArray):
        raise BadInput(f"rank {rank} has a masked array, and its mask would be lost: fill it first (array.filled(0)).")
    try:
        result = np.asarray(array)
    except ValueError as error:
        raise BadInput(f"rank {rank} has no array: {error}") from None
    if result.dtype.kind in "OSUMmV" and result.dtype.name != "bfloat16":
        raise BadInput(
            f"rank {rank} has an array of type {result.dtype}; a collective needs numbers of one fixed size."
        )
    return result


def as_outputs(
    out: Sequence[np.ndarray] | None, shapes: Sequence[tuple[int, ...]], dtype: np.dtype
) -> list[np.ndarray]:
    """Return one array a rank for the results: new ones, or the caller's, checked.

    Args:
        out: The caller's arrays, or `None`.
        shapes: The shape of each rank's result.
        dtype: The type of the results.

    Returns:
        The arrays; the caller's own objects where `out` is given.

    Raises:
        BadInput: There are too few or too many, one has another shape or type, is read-only, is no array, or shares
            memory with another.

    Example:
        >>> as_outputs([np.zeros(3)], [(2,)], np.dtype("float64"))
        Traceback (most recent call last):
        ...
        tfdistedu.errors.BadInput: out[0] has shape (3,), and the result has (2,).

    """
    if out is None:
        return [np.empty(shape, dtype) for shape in shapes]
    results = _as_list(out)
    if len(results) != len(shapes):
        raise BadInput(f"out has {len(results)} arrays, and there are {len(shapes)} ranks.")
    for rank, (array, shape) in enumerate(zip(results, shapes, strict=True)):
        if not isinstance(array, np.ndarray):
            raise BadInput(f"out[{rank}] is a {type(array).__name__}, which cannot be written to; give a NumPy array.")
        if array.shape != shape:
            raise BadInput(f"out[{rank}] has shape {array.shape}, and the result has {shape}.")
        if array.dtype != dtype:
            raise BadInput(f"out[{rank}] has type {array.dtype}, and the result has {dtype}.")
        if not array.flags.writeable:
            raise BadInput(f"out[{rank}] is read-only.")
        for other in range(rank):
            if np.may_share_memory(array, results[other]) and np.shares_memory(array, results[other]):
                raise BadInput(f"out[{other}] and out[{rank}] share memory: each rank needs its own.")
    return results


def deliver(totals: Sequence[np.ndarray], results: list[np.ndarray]) -> list[np.ndarray]:
    """Write each rank's result; called when nothing can fail any more.

    Args:
        totals: One array a rank, in any shape of the right size.
        results: From `as_outputs`.

    Returns:
        `results`.

    """
    for total, result in zip(totals, results, strict=True):
        result[...] = total.reshape(result.shape)
    return results
