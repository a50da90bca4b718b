"""How are gradients averaged across machines? All-reduce and its family as data, from schedules to prices.

The idea: an algorithm is a short pure function that returns a `Schedule`, rounds of transfers. One definition is read
by all others; nothing implements an algorithm twice.

    algorithms --> Schedule --+--> verify      is it right, for all numbers, and with the same bits on all ranks?
                              +--> executor    what does it do to my arrays? (the oracle)
                              +--> plan        what must each rank do, and for whom must it wait?
                              +--> draw        what does it look like?
                              +--> cost        what does it cost?

Read in this order: `schedule`, `algorithms.rings`, `executor`, `verify` (with `rules` and `terms`), `arithmetic`,
`plan`, `model`, `cost`, `draw`.

Costs: imports NumPy and nothing else that is slow.

Leaves out: processes and networks; see `tfdistedu.links`.
"""

from tfdistedu.collectives.algorithms import (
    ALGORITHMS,
    algorithm,
    chain,
    direct,
    find,
    halving_doubling,
    hierarchical,
    naive,
    recursive_doubling,
    ring,
    schedule_for,
    tree,
)
from tfdistedu.collectives.executor import all_reduce, execute
from tfdistedu.collectives.family import all_gather, broadcast, reduce, reduce_scatter
from tfdistedu.collectives.plan import Plan, make_plan
from tfdistedu.collectives.rules import BrokenSchedule, check_rules
from tfdistedu.collectives.schedule import Schedule, Transfer, chunk_bounds
from tfdistedu.collectives.verify import verify

__all__ = [
    "ALGORITHMS",
    "BrokenSchedule",
    "Plan",
    "Schedule",
    "Transfer",
    "algorithm",
    "all_gather",
    "all_reduce",
    "broadcast",
    "chain",
    "check_rules",
    "chunk_bounds",
    "direct",
    "execute",
    "find",
    "halving_doubling",
    "hierarchical",
    "make_plan",
    "naive",
    "recursive_doubling",
    "reduce",
    "reduce_scatter",
    "ring",
    "schedule_for",
    "tree",
    "verify",
]
