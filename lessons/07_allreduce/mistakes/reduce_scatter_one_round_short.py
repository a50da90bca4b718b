"""n - 2 rounds of adding are enough."""

from tfdistedu.collectives import Schedule, execute, ring

ID = "reduce_scatter_one_round_short"
EXERCISE = "all_reduce"
BELIEVES = "n - 2 rounds of adding are enough."
TRUE = "Each chunk needs n - 1 additions."
QUESTION = "With how many ranks is n - 2 still something?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    n = len(arrays)
    rounds = ring(n).rounds
    buffers = [array.copy() for array in arrays]
    execute(Schedule("short", n, n, rounds[: max(n - 2, 0)] + rounds[n - 1 :]), buffers, trace=trace)
    return buffers
