"""One rank can add for all, that is simpler."""

from tfdistedu.collectives import execute, naive

ID = "gathers_at_rank_0"
EXERCISE = "all_reduce"
BELIEVES = "One rank can add for all, that is simpler."
TRUE = "Right values; but all bytes go through one link, and it grows with n."
QUESTION = "Who talks to whom?"
CAUGHT_BY = "links"
SEEN = "ours"


def all_reduce(arrays, trace):
    buffers = [array.copy() for array in arrays]
    execute(naive(len(arrays)), buffers, trace=trace)
    return buffers
