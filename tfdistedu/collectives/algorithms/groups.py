"""What if some links are much faster than others? Add inside each group first, and send only sums between groups.

The idea: ranks on one machine form a group with a leader. The members hand their messages to the leader, the leaders
run a ring among themselves, and each leader hands the result back. The slow links carry one message a group instead of
one a rank.

    four ranks, groups of two

    round 1     1 -> 0              3 -> 2            inside the groups: whole messages, added
    round 2-3        0 <----------> 2                 between the leaders: a ring of two, half a message each way
    round 4     0 -> 1              2 -> 3            inside the groups: whole messages, taken over

Costs, with g ranks a group and m groups: 2(m - 1) + 2 rounds. A leader moves 2(g - 1) whole messages inside its group
and 2(m - 1)/m of one between the groups.

Leaves out: sharing the leader's work among the members of a group, as NCCL's trees and most MPI libraries do.

Source: the two levels are ours; the ring between the leaders is P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce
algorithms for clusters of workstations", Journal of Parallel and Distributed Computing 69 (2009).
"""

from __future__ import annotations

import math

from tfdistedu.collectives.algorithms.registry import algorithm, whole_number
from tfdistedu.collectives.algorithms.rings import ring
from tfdistedu.collectives.schedule import Schedule, Transfer


@algorithm
def hierarchical(n_ranks: int, group_size: int | None = None) -> Schedule:
    """All-reduce in two levels: inside groups of neighbouring ranks, and a ring between their leaders.

    Args:
        n_ranks: Number of ranks, 1 or more.
        group_size: Ranks a group, best the number on one machine; the last group may be smaller. `None` takes the
            square root of `n_ranks`, rounded up, so that there are about as many groups as ranks in one.

    Returns:
        A schedule with one chunk a group.

    Raises:
        BadInput: `n_ranks` or `group_size` is no whole number from 1 up.

    Example:
        >>> [[transfer[:3] for transfer in transfers] for transfers in hierarchical(4, group_size=2).rounds[1:3]]
        [[(0, 2, 1), (2, 0, 0)], [(0, 2, 0), (2, 0, 1)]]

    """
    size = math.isqrt(n_ranks - 1) + 1 if group_size is None else whole_number(group_size, "group_size")
    leaders = range(0, n_ranks, size)
    chunks = range(len(leaders))
    members = [(r, leaders[r // size]) for r in range(n_ranks) if r % size]
    # Step 1: inside each group. Members hand their whole message to the leader, chunk by chunk.
    up = [Transfer(member, leader, c, True) for member, leader in members for c in chunks]
    # Step 2: between the groups. The ring of the leaders, with their true ranks written in.
    between = [
        [t._replace(src=leaders[t.src], dst=leaders[t.dst]) for t in transfers]
        for transfers in ring(len(leaders)).rounds
    ]
    # Step 3: inside each group again. Members take the result over.
    down = [Transfer(leader, member, c, False) for member, leader in members for c in chunks]
    rounds = [transfers for transfers in [up, *between, down] if transfers]
    return Schedule("hierarchical", n_ranks, len(chunks), rounds)
