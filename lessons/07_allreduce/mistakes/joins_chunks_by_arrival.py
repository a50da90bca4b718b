"""Chunks can be joined in the order in which they came."""

import numpy as np

from tfdistedu.collectives import chunk_bounds, execute, ring

ID = "joins_chunks_by_arrival"
EXERCISE = "all_reduce"
BELIEVES = "Chunks can be joined in the order in which they came."
TRUE = "Their order is the message's, on every rank."
QUESTION = "Do you compare every index on every rank?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    n = len(arrays)
    bounds = chunk_bounds(arrays[0].size, n)
    buffers = [array.copy() for array in arrays]
    execute(ring(n), buffers, trace=trace)
    came = [[(rank - s) % n for s in range(n)] for rank in range(n)]
    return [np.concatenate([b[bounds[c] : bounds[c + 1]] for c in came[r]]) for r, b in enumerate(buffers)]
