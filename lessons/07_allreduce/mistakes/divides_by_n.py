"""All-reduce means the mean."""

from tfdistedu.collectives import execute, ring

ID = "divides_by_n"
EXERCISE = "all_reduce"
BELIEVES = "All-reduce means the mean."
TRUE = "It means the sum; who wants the mean divides once, afterwards."
QUESTION = "What is the right result for n ranks that all hold 1?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    buffers = [array.copy() for array in arrays]
    execute(ring(len(arrays)), buffers, trace=trace)
    return [buffer / len(arrays) for buffer in buffers]
