"""What do sum, mean, min and max mean for each type of number, so that nothing is lost in silence?

The idea: before the first round every array is *widened* to the type in which it is added; after the last round it is
*narrowed* once, and what does not fit is seen there. All ranks narrow the same bits, so all get the same result.

    float16  --widen-->  float32  --add, add, add-->  float32  --(divide, for the mean)-->  --round once-->  float16

| type of the arrays | added in        | sum                              | mean              | min, max             |
|--------------------|-----------------|----------------------------------|-------------------|----------------------|
| float32, float64,  | their own type  | rounded as the tree of additions | sum / n_ranks, in | NaN wins; -0.0 is    |
| longdouble         |                 | says; too large becomes inf      | that same type    | below 0.0, as in     |
| float16, bfloat16  | float32         | rounded once, at the end         | the same          | IEEE 754-2019        |
| int8, uint8,       | int32           | exact; a *result* that does not  | refused: it is no | exact                |
| int16, uint16      |                 | fit is an error                  | integer           |                      |
| int32, uint32      | int64           | the same                         | refused           | exact                |
| int64, uint64      | their own type  | exact; an *addition* that does   | refused           | exact                |
|                    |                 | not fit is an error              |                   |                      |
| bool               | bool            | refused: a count is no bool      | refused           | all, any             |
| complex, text,     | refused         | refused                          | refused           | refused              |
| objects, float8    |                 |                                  |                   |                      |

NaN and inf are values like others and arrive; only the payload of a NaN (which NaN it is) may differ between ranks.
Why refuse the mean of integers? [1, 2] has the mean 1.5; an integer result would lose the half in silence, and a float
result would change the type under the caller's hands. Convert first: that says what you want.

Costs: minimum and maximum of floats look for zeros, and so take a few times as long as NumPy's; int64 sums are checked
after every addition, about three times the time of one.

Leaves out: products, and compensated (Kahan) sums.

Source: IEEE 754-2019, section 9.6 (minimum and maximum); H. S. Warren, "Hacker's Delight", chapter 2 (how to see
that an addition overflowed).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tfdistedu.errors import BadInput

OPS = ("sum", "mean", "min", "max")
"""The reductions that there are."""

_WIDE = {2: np.dtype(np.int32), 1: np.dtype(np.int32), 4: np.dtype(np.int64)}


def accumulator(dtype: np.dtype, op: str) -> np.dtype:
    """Return the type in which arrays of this type are reduced.

    Args:
        dtype: The arrays' type; any byte order.
        op: One of `OPS`.

    Returns:
        The type of the accumulators, in this machine's byte order.

    Raises:
        BadInput: There is no such reduction, or not for this type; the message says what to do.

    Example:
        >>> accumulator(np.dtype("float16"), "mean"), accumulator(np.dtype("uint8"), "sum")
        (dtype('float32'), dtype('int32'))

    """
    if op not in OPS:
        raise BadInput(f"there is no reduction {op!r}; there are {', '.join(OPS)}.")
    if (dtype.kind == "f" and dtype.itemsize == 2) or dtype.name == "bfloat16":
        return np.dtype(np.float32)
    if dtype.kind == "f" and dtype.itemsize >= 4:
        return dtype.newbyteorder("=")
    if dtype.kind == "b" and op in ("sum", "mean"):
        raise BadInput(
            f"the {op} of bools is a count, and no bool holds it: convert to an integer (array.astype(np.int64)), or "
            "ask for op='max' (any) or op='min' (all)."
        )
    if dtype.kind in "iu" and op == "mean":
        raise BadInput(
            f"the mean of {dtype.name} is no integer in general: convert first (array.astype(np.float64)), or ask for "
            "op='sum' and divide as you wish."
        )
    if dtype.kind in "iu" and op == "sum":
        return _WIDE.get(dtype.itemsize, dtype.newbyteorder("="))
    if dtype.kind in "iub":
        return dtype.newbyteorder("=")
    raise BadInput(
        f"arrays of type {dtype.name} cannot be reduced with {op!r}: there are bool, integers, float16, bfloat16, "
        "float32, float64 and longdouble. A complex array can be sent as pairs of floats (array.view(np.float32))."
    )


def combiner(dtype: np.dtype, op: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the function that reduces two accumulators into a new one; it commutes, bit for bit, but for NaN payloads.

    Args:
        dtype: The accumulators' type, from `accumulator`.
        op: One of `OPS`.

    Returns:
        A function of (left, right), two arrays of one shape, that returns a new array and changes neither.

    Raises:
        BadInput: There is no such reduction.

    Example:
        >>> low = combiner(np.dtype("float32"), "min")
        >>> low(np.float32([0.0, 2.0]), np.float32([-0.0, np.nan])).tolist()
        [-0.0, nan]

    """
    if op not in OPS:
        raise BadInput(f"there is no reduction {op!r}; there are {', '.join(OPS)}.")
    if op in ("sum", "mean"):
        return _checked_sum if dtype.kind in "iu" and dtype.itemsize == 8 else np.add
    if dtype.kind == "f":
        return _minimum if op == "min" else _maximum
    return np.minimum if op == "min" else np.maximum


def finish(total: np.ndarray, dtype: np.dtype, op: str, n_ranks: int) -> np.ndarray:
    """Return the result in the arrays' own type: divided for the mean, rounded or checked once.

    Args:
        total: The reduced accumulator; it is not changed.
        dtype: The type of the caller's arrays.
        op: One of `OPS`.
        n_ranks: How many arrays were reduced.

    Returns:
        A new array of type `dtype`.

    Raises:
        BadInput: A sum of integers does not fit the type.

    Example:
        >>> finish(np.int32([100, 27]), np.dtype("int8"), "sum", 2)
        array([100,  27], dtype=int8)

    """
    if op == "mean":
        total = np.divide(total, total.dtype.type(n_ranks))
    if dtype.kind in "iu" and total.size and total.dtype.itemsize > dtype.itemsize:
        limits = np.iinfo(dtype)
        wrong = (total < limits.min) | (total > limits.max)
        if wrong.any():
            _refuse(int(total.reshape(-1)[np.argmax(wrong.reshape(-1))]), dtype.name)
    return total.astype(dtype)


def _minimum(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the smaller one; -0.0 is smaller than 0.0, whichever comes first (NumPy returns either)."""
    lowest = np.minimum(left, right)
    zeros = (left == 0) & (right == 0)
    lowest[zeros] = -(-left[zeros] - right[zeros])
    return lowest


def _maximum(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the larger one; 0.0 is larger than -0.0, whichever comes first (NumPy returns either)."""
    highest = np.maximum(left, right)
    zeros = (left == 0) & (right == 0)
    highest[zeros] = left[zeros] + right[zeros]
    return highest


def _checked_sum(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Add 64-bit integers, and refuse an overflow: there is no wider type that could hold it."""
    total = np.add(left, right)
    signed = total.dtype.kind == "i"
    wrong = ((left ^ total) & (right ^ total)) < 0 if signed else total < left
    if wrong.any():
        first = np.argmax(wrong)
        _refuse(int(left.reshape(-1)[first]) + int(right.reshape(-1)[first]), total.dtype.name)
    return total


def _refuse(value: int, name: str) -> None:
    """Say that a sum does not fit, which one, and what to do."""
    raise BadInput(
        f"a sum is {value}, and {name} cannot hold it: convert the arrays to a wider type first (np.int64 or "
        "np.float64). Nothing was written."
    )
