"""The chunk that comes first belongs to the front."""

import numpy as np

from tfdistedu.collectives import chunk_bounds, execute, ring

ID = "writes_into_the_wrong_place"
EXERCISE = "all_reduce"
BELIEVES = "The chunk that comes first belongs to the front."
TRUE = "Each chunk belongs where it was cut."
QUESTION = "Do your numbers depend on the index?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    n = len(arrays)
    bounds = chunk_bounds(arrays[0].size, n)
    buffers = [array.copy() for array in arrays]
    execute(ring(n), buffers, trace=trace)
    chunks = [[buffer[bounds[c] : bounds[c + 1]] for c in range(n)] for buffer in buffers]
    return [np.concatenate(parts[1:] + parts[:1]) for parts in chunks]
