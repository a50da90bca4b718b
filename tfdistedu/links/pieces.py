"""How is a long message cut, so that all that is touched stays in the cache?

    message   |---- piece 0 ----|---- piece 1 ----|-- 2 --|      each piece runs through the whole schedule
    piece     |chunk 0|chunk 1|chunk 2|chunk 3|                  bounds on 64 bytes: unaligned additions are slow

The cut decides which rank adds which element, and so the last bits of a float sum. It depends on nothing but size, type
and number of chunks: so all links give the same bits, and `reference` gives them too, on the plain executor.

Costs: a piece more is one more run of the schedule, some tens of microseconds. Leaves out: pieces that overlap.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from tfdistedu.collectives.executor import execute
from tfdistedu.collectives.schedule import Schedule, chunk_bounds

PIECE_BYTES = 1 << 20
"""The longest piece: with two halves of a window it stays in a core's second-level cache."""
_LINE = 64  # bytes of a cache line


@functools.lru_cache(maxsize=1024)
def cut(size: int, itemsize: int, n_chunks: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Cut a message into pieces, and each piece into chunks.

    Args:
        size: Number of elements.
        itemsize: Bytes of one.
        n_chunks: Chunks of the schedule.

    Returns:
        For each piece: where it starts, and `n_chunks + 1` bounds within it. At least one piece, which may be empty.

    Example:
        >>> cut(300_000, 4, 2)
        ((0, (0, 131072, 262144)), (262144, (0, 18928, 37856)))

    """
    most, multiple = PIECE_BYTES // itemsize, max(1, _LINE // itemsize)
    starts = range(0, max(size, 1), most)
    return tuple((a, tuple(chunk_bounds(min(most, size - a), n_chunks, multiple))) for a in starts)


def reference(
    schedule: Schedule, buffers: Sequence[np.ndarray], combine: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.add
) -> None:
    """Run a schedule on the plain executor, in place, cut as links cut: their bits have to be these.

    Args:
        schedule: The schedule.
        buffers: One flat array a rank, all of one length and type.
        combine: What a reduction does.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> buffers = [np.full(3, 1.0), np.full(3, 2.0)]
        >>> reference(ring(2), buffers)
        >>> buffers[1]
        array([3., 3., 3.])

    """
    for start, bounds in cut(buffers[0].size, buffers[0].itemsize, schedule.n_chunks):
        execute(schedule, [each[start : start + bounds[-1]] for each in buffers], combine, bounds=bounds)
