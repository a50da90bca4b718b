# stub.py is made by `make record`; your copy of it is exercise.py, and nothing overwrites that.
"""Lesson 07_allreduce: All-reduce in a ring.

How can n machines add up their gradients when no machine may be the bottleneck?

In exercise.py, replace what says "not started". Then: pytest lessons/07_allreduce
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tfdistedu.collectives.schedule import Schedule, Transfer
from tfdistedu.collectives.trace import Record


def ring_all_gather(n_ranks: int) -> Schedule:
    """All-gather in a ring: rank r starts with chunk r, and afterwards all have all. The second half of `ring`.

    Args:
        n_ranks: Number of ranks, 1 or more.
    """
    # Step 1: pass on what came last.
    raise NotImplementedError("allreduce.ring_all_gather: not started")


def predict_ring() -> dict[str, int]:
    """Predict what a ring all-reduce of 7 ranks does with a message of 1,400 float32 numbers (4 bytes each) a rank.

    Return {"rounds": ..., "bytes_sent_by_rank_0": ..., "additions_in_rank_0": ...} with your numbers, worked out on
    paper. The last one counts the single numbers that rank 0 adds to its own.
    """
    raise NotImplementedError("allreduce.predict_ring: not started")


AllReduce = Callable[[Sequence[np.ndarray], list[Record]], list[np.ndarray]]


def check_ring(all_reduce: AllReduce) -> None:
    """Raise an AssertionError unless `all_reduce` is a ring that adds up one array a rank, as it should.

    A ring may run to the right or to the left and may cut its chunks as it likes. All ranks end with the same bits,
    nobody sends to anyone but a neighbour, and all ranks together send exactly 2(n - 1) times the message.

    Args:
        all_reduce: A function of (arrays, trace). `arrays` holds one float64 array a rank, one-dimensional, all of one
            length; they stay as they are. It returns one array a rank, and appends to the list `trace` one `Record`
            (src, dst, n_bytes and more) for every message that is sent.
    """
    # Step 1: choose numbers that show who is missing.
    # Step 2: check every rank's result.
    # Step 3: check what else it did.
    # Step 4: check who talked to whom, and how much.
    raise NotImplementedError("allreduce.check_ring: not started")
