"""If rank 0 has the sum, all have it."""

from tfdistedu.collectives import execute, ring

ID = "right_on_rank_0_only"
EXERCISE = "all_reduce"
BELIEVES = "If rank 0 has the sum, all have it."
TRUE = "Rank 0's result has to travel back."
QUESTION = "Whose results do you look at?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    buffers = [array.copy() for array in arrays]
    execute(ring(len(arrays)), buffers, trace=trace)
    return [buffers[0], *(array.copy() for array in arrays[1:])]
