"""How few rounds does it take when a rank talks to only one other at a time? Twice the depth of a binomial tree.

The idea: in each round, half of the ranks that still hold a partial sum hand it to the other half. After log2(n) rounds
one rank has everything. Then the same tree is walked backwards with the finished sum.

    four ranks

    round 1     1 -> 0          3 -> 2          added
    round 2     2 -> 0                          added: rank 0 has everything
    round 3     0 -> 2                          taken over
    round 4     0 -> 1          2 -> 3          taken over

Costs: 2 ceil(log2 n) rounds, and a whole message in each: few rounds and many bytes. Good for short messages.

Leaves out: cutting the message (see `chains` and `doublings`), and a second tree that uses the idle ranks.

Source: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of Collective Communication Operations in MPICH",
International Journal of High Performance Computing Applications 19 (2005), section 4: binomial trees.
"""

from __future__ import annotations

from tfdistedu.collectives.algorithms.registry import algorithm, rotated
from tfdistedu.collectives.schedule import Schedule, Transfer


@algorithm
def tree(n_ranks: int) -> Schedule:
    """All-reduce along a binomial tree: up with the sums, down with the result.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of one chunk and 2 ceil(log2 n) rounds.

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> [[transfer[:2] for transfer in transfers] for transfers in tree(4).rounds]
        [[(1, 0), (3, 2)], [(2, 0)], [(0, 2)], [(0, 1), (2, 3)]]

    """
    distances = [2**k for k in range((n_ranks - 1).bit_length())]
    # Step 1: up. Ranks in the odd places hand their sum to the left and are done, so each round halves who is left.
    up = [[Transfer(r + d, r, 0, True) for r in range(0, n_ranks - d, 2 * d)] for d in distances]
    # Step 2: down. The same arrows turned round, in the opposite order, now carry the finished sum.
    down = [[Transfer(t.dst, t.src, 0, False) for t in transfers] for transfers in reversed(up)]
    return Schedule("tree", n_ranks, 1, up + down)


@algorithm(goal="reduce")
def tree_reduce(n_ranks: int, root: int = 0) -> Schedule:
    """Reduce along a binomial tree: the first half of `tree`, with the ranks renamed so that it ends at `root`.

    Args:
        n_ranks: Number of ranks, 1 or more.
        root: The rank that gets the sum.

    Returns:
        A schedule of one chunk and ceil(log2 n) rounds.

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up, or the root is no rank.

    Example:
        >>> [[transfer[:2] for transfer in transfers] for transfers in tree_reduce(4, root=1).rounds]
        [[(2, 1), (0, 3)], [(3, 1)]]

    """
    rounds = tree(n_ranks).rounds
    return rotated(Schedule("tree_reduce", n_ranks, 1, rounds[: len(rounds) // 2]), root)


@algorithm(goal="broadcast")
def tree_broadcast(n_ranks: int, root: int = 0) -> Schedule:
    """Broadcast along a binomial tree: the second half of `tree`; who has the message doubles in every round.

    Args:
        n_ranks: Number of ranks, 1 or more.
        root: The rank that has the message.

    Returns:
        A schedule of one chunk and ceil(log2 n) rounds.

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up, or the root is no rank.

    Example:
        >>> [len(transfers) for transfers in tree_broadcast(8).rounds]
        [1, 2, 4]

    """
    rounds = tree(n_ranks).rounds
    return rotated(Schedule("tree_broadcast", n_ranks, 1, rounds[len(rounds) // 2 :]), root)
