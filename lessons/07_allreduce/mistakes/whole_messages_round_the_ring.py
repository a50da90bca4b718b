"""A ring is a ring, whatever travels."""

from tfdistedu.collectives import Schedule, Transfer, execute

ID = "whole_messages_round_the_ring"
EXERCISE = "all_reduce"
BELIEVES = "A ring is a ring, whatever travels."
TRUE = "With whole messages every rank sends n times as many bytes."
QUESTION = "How many bytes may all ranks send together?"
CAUGHT_BY = "bytes"
SEEN = "ours"


def all_reduce(arrays, trace):
    n = len(arrays)
    chain = [[Transfer(r, r + 1, 0, True)] for r in range(n - 1)]
    back = [[Transfer((r - 1) % n, r, 0, False)] for r in range(n)][: n - 1]
    idle = [[Transfer(r, (r + 1) % n, 0, False) for r in range(n)] for _ in range(n - 1 if n > 1 else 0)]
    buffers = [array.copy() for array in arrays]
    execute(Schedule("whole", n, 1, chain + back + idle), buffers, trace=trace)
    return buffers
