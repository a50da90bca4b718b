"""Which ways are there to reduce, scatter, gather and broadcast? One function each.

The idea: an algorithm is six to fifteen lines that return data. Read `rings` first.

    rings       ring                                   fewest bytes, many rounds
    stars       naive, direct                          two rounds
    trees       tree                                   few rounds, whole messages
    doublings   recursive_doubling, halving_doubling   few rounds, everybody works
    groups      hierarchical                           fast links inside, slow links between
    chains      chain                                  neighbours only, pipelined

Costs, for a message of one and n ranks (p: the largest power of two up to n; "busiest" is the rank that moves most):

    naive               2 rounds                busiest moves 2(n - 1)
    ring                2(n - 1) rounds         2(n - 1)/n, the least possible
    direct              2 rounds                2(n - 1)/n, in n - 1 messages at once
    tree                2 ceil(log2 n) rounds   2 ceil(log2 n)
    recursive_doubling  log2 p rounds           log2 p                        (+ 2 rounds of 1 when n is not p)
    halving_doubling    2 log2 p rounds         2(p - 1)/p                    (+ 2 rounds of 1 when n is not p)
    hierarchical        2m rounds, m groups     2(g - 1) + 2(m - 1)/m, groups of g
    chain               2(c + n - 2) rounds     2(c + n - 2)/c, c chunks

A new algorithm is one function with `@algorithm` over it; the verifier, the executor, the pictures, the prices and the
command line find it by its name.

Leaves out: which is best for you; ask `tfdistedu simulate allreduce`.
"""

from tfdistedu.collectives.algorithms.chains import chain, chain_broadcast
from tfdistedu.collectives.algorithms.doublings import halving_doubling, recursive_doubling
from tfdistedu.collectives.algorithms.groups import hierarchical
from tfdistedu.collectives.algorithms.registry import ALGORITHMS, algorithm, find, schedule_for
from tfdistedu.collectives.algorithms.rings import ring, ring_all_gather, ring_reduce_scatter
from tfdistedu.collectives.algorithms.stars import (
    direct,
    direct_all_gather,
    direct_reduce_scatter,
    naive,
    naive_broadcast,
    naive_reduce,
)
from tfdistedu.collectives.algorithms.trees import tree, tree_broadcast, tree_reduce

__all__ = [
    "ALGORITHMS",
    "algorithm",
    "chain",
    "chain_broadcast",
    "direct",
    "direct_all_gather",
    "direct_reduce_scatter",
    "find",
    "halving_doubling",
    "hierarchical",
    "naive",
    "naive_broadcast",
    "naive_reduce",
    "recursive_doubling",
    "ring",
    "ring_all_gather",
    "ring_reduce_scatter",
    "schedule_for",
    "tree",
    "tree_broadcast",
    "tree_reduce",
]
