"""What arrives replaces what stands there."""

from tfdistedu.collectives import Schedule, execute, ring

ID = "overwrites_instead_of_adding"
EXERCISE = "all_reduce"
BELIEVES = "What arrives replaces what stands there."
TRUE = "In the first half it has to be added."
QUESTION = "Would your numbers show it if one rank's part were missing?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    n = len(arrays)
    rounds = [[t._replace(reduce=False) for t in transfers] for transfers in ring(n).rounds]
    buffers = [array.copy() for array in arrays]
    execute(Schedule("overwrites", n, n, rounds), buffers, trace=trace)
    return buffers
