"""After the first half rank r owns chunk r + 1."""

from tfdistedu.collectives import Schedule, Transfer, execute, ring

ID = "gathers_the_wrong_chunk"
EXERCISE = "all_reduce"
BELIEVES = "After the first half rank r owns chunk r + 1."
TRUE = "It depends on where the first half began."
QUESTION = "Would your numbers show it if two chunks were in different states?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    n = len(arrays)
    rounds = list(ring(n).rounds[: n - 1])
    rounds += [[Transfer(r, (r + 1) % n, (r + 1 - s) % n, False) for r in range(n)] for s in range(n - 1)]
    buffers = [array.copy() for array in arrays]
    execute(Schedule("wrong chunk", n, n, rounds), buffers, trace=trace)
    return buffers
