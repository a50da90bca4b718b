"""The message can be cut into n equal chunks."""

from tfdistedu.collectives import execute, ring

ID = "drops_the_remainder"
EXERCISE = "all_reduce"
BELIEVES = "The message can be cut into n equal chunks."
TRUE = "Only when n divides its length; else the rest has to go somewhere."
QUESTION = "Which lengths do you try?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    n = len(arrays)
    each = arrays[0].size // n
    buffers = [array.copy() for array in arrays]
    execute(ring(n), buffers, bounds=[each * c for c in range(n + 1)], trace=trace)
    return buffers
