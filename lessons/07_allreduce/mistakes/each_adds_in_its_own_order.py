"""Everybody can add everything, sums are sums."""

from tfdistedu.collectives import Schedule, Transfer, execute

ID = "each_adds_in_its_own_order"
EXERCISE = "all_reduce"
BELIEVES = "Everybody can add everything, sums are sums."
TRUE = "Sums of floats depend on the order, so ranks drift apart; and bytes grow with n."
QUESTION = "Who talks to whom, with three ranks or more?"
CAUGHT_BY = "bytes"
SEEN = "ours"


def all_reduce(arrays, trace):
    n = len(arrays)
    rounds = [[Transfer((r + d) % n, r, 0, True) for r in range(n) for d in range(1, n)]]
    buffers = [array.copy() for array in arrays]
    execute(Schedule("own order", n, 1, rounds if n > 1 else []), buffers, trace=trace)
    return buffers
