"""The second half may go to the left with the same chunk numbers."""

from tfdistedu.collectives import Schedule, Transfer, execute, ring

ID = "gathers_the_wrong_way"
EXERCISE = "all_reduce"
BELIEVES = "The second half may go to the left with the same chunk numbers."
TRUE = "To the left the numbers go up."
QUESTION = "With how many ranks do left and right differ?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    n = len(arrays)
    rounds = list(ring(n).rounds[: n - 1])
    rounds += [[Transfer(r, (r - 1) % n, (r - s) % n, False) for r in range(n)] for s in range(n - 1)]
    buffers = [array.copy() for array in arrays]
    execute(Schedule("wrong way", n, n, rounds), buffers, trace=trace)
    return buffers
