"""Our answers to the exercises of this lesson that are no part of the package. Try yours first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tfdistedu.collectives import ring
from tfdistedu.collectives.trace import Record, trace

AllReduce = Callable[[Sequence[np.ndarray], list[Record]], list[np.ndarray]]


def predict_ring() -> dict[str, int]:
    """Predict what a ring all-reduce of 7 ranks does with a message of 1,400 float32 numbers (4 bytes each) a rank.

    Return {"rounds": ..., "bytes_sent_by_rank_0": ..., "additions_in_rank_0": ...} with your numbers, worked out on
    paper. The last one counts the single numbers that rank 0 adds to its own.
    """
    records = trace(ring(7), size=1400, itemsize=4)
    return {
        "rounds": len(ring(7).rounds),
        "bytes_sent_by_rank_0": sum(record.n_bytes for record in records if record.src == 0),
        "additions_in_rank_0": sum(record.n_bytes // 4 for record in records if record.dst == 0 and record.reduce),
    }


def check_ring(all_reduce: AllReduce) -> None:
    """Raise an AssertionError unless `all_reduce` is a ring that adds up one array a rank, as it should.

    A ring may run to the right or to the left and may cut its chunks as it likes. All ranks end with the same bits,
    nobody sends to anyone but a neighbour, and all ranks together send exactly 2(n - 1) times the message.

    Args:
        all_reduce: A function of (arrays, trace). `arrays` holds one float64 array a rank, one-dimensional, all of one
            length; they stay as they are. It returns one array a rank, and appends to the list `trace` one `Record`
            (src, dst, n_bytes and more) for every message that is sent.
    """
    for n in range(1, 6):
        for size in (0, 1, n - 1, n, 2 * n + 1, 4 * n):
            # Step 1: choose numbers that show who is missing. They depend on rank and index, and float32 loses them.
            arrays = [2.0**25 + 1 + 1000 * rank + np.arange(size) for rank in range(n)]
            given, sent = [array.copy() for array in arrays], []
            results = all_reduce(given, sent)
            # Step 2: check every rank's result. Each has its own number of ways to be wrong.
            right = [np.array_equal(result, sum(arrays)) for result in results]
            assert right == [True] * n, f"values: wrong with {n} ranks and {size} numbers"
            # Step 3: check what else it did. The caller's arrays are not its own.
            assert all(map(np.array_equal, given, arrays)), f"inputs: changed with {n} ranks and {size} numbers"
            # Step 4: check who talked to whom, and how much. Right values alone do not make a ring.
            hops = {(record.dst - record.src) % n for record in sent}
            assert hops <= {1, n - 1}, f"links: no ring of {n} ranks"
            n_bytes = sum(record.n_bytes for record in sent)
            assert n_bytes == 2 * (n - 1) * arrays[0].nbytes, f"bytes: {n_bytes} with {n} ranks and {size} numbers"
