"""What is the shortest way to write an all-reduce? Send everything to everyone who needs it, in two rounds.

The idea of `naive`: one rank collects all messages, adds them, and sends the sum back. The idea of `direct`: share that
work. Rank r collects and adds only chunk r, and then sends this chunk to all.

    naive, four ranks                          direct, four ranks (each arrow is one chunk, a quarter)

    round 1   1 --+                            round 1   chunk 0 of 1, 2, 3 --> rank 0
              2 --+--> 0   (adds)                        chunk 1 of 0, 2, 3 --> rank 1 ...  (each adds its own)
              3 --+
    round 2   0 --+--> 1, 2, 3                 round 2   rank 0: finished chunk 0 --> 1, 2, 3 ...

Costs: two rounds each. `naive`: rank 0 receives and sends n - 1 whole messages while all others idle. `direct`: every
rank sends 2(n - 1)/n of the message, as few bytes as the ring, but in 2(n - 1) small messages at once, to everyone;
good where sending is cheap (shared memory, NVLink), bad where n - 1 senders meet in one network port.

Leaves out: who waits for whom inside a round; see `tfdistedu.collectives.plan`.

Source: none; both are what one writes first, and the measure for all others.
"""

from __future__ import annotations

from tfdistedu.collectives.algorithms.registry import algorithm, rotated
from tfdistedu.collectives.schedule import Schedule, Transfer


@algorithm
def naive(n_ranks: int) -> Schedule:
    """All-reduce by gather and broadcast: rank 0 does all the work.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of one chunk and two rounds (none for one rank).

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> [len(transfers) for transfers in naive(4).rounds]
        [3, 3]

    """
    # Step 1: gather. All send to rank 0, which adds in the order of the ranks.
    gather = [Transfer(r, 0, 0, True) for r in range(1, n_ranks)]
    # Step 2: broadcast. Rank 0 sends the sum back, so all hold the same bits.
    broadcast = [Transfer(0, r, 0, False) for r in range(1, n_ranks)]
    return Schedule("naive", n_ranks, 1, [gather, broadcast] if n_ranks > 1 else [])


@algorithm
def direct(n_ranks: int) -> Schedule:
    """All-reduce in two rounds with the work shared: rank r adds chunk r of everyone, then gives it to everyone.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of `n_ranks` chunks and two rounds (none for one rank).

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> [len(transfers) for transfers in direct(4).rounds]
        [12, 12]

    """
    n = n_ranks
    # Step 1: reduce. Rank r gets chunk r from all others; it begins with its right neighbour, so that not all send to
    # rank 0 first.
    reduce = [Transfer((r + k) % n, r, r, True) for r in range(n) for k in range(1, n)]
    # Step 2: gather. Rank r gets each finished chunk from its owner.
    gather = [Transfer((r + k) % n, r, (r + k) % n, False) for r in range(n) for k in range(1, n)]
    return Schedule("direct", n, n, [reduce, gather] if n > 1 else [])


@algorithm(goal="reduce_scatter")
def direct_reduce_scatter(n_ranks: int) -> Schedule:
    """Reduce-scatter in one round: rank r gets chunk r from everyone. The first half of `direct`.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of `n_ranks` chunks and one round (none for one rank).

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> (direct_reduce_scatter(4) + direct_all_gather(4)).rounds == direct(4).rounds
        True

    """
    return Schedule("direct_reduce_scatter", n_ranks, n_ranks, direct(n_ranks).rounds[:1])


@algorithm(goal="all_gather")
def direct_all_gather(n_ranks: int) -> Schedule:
    """All-gather in one round: everyone gets chunk r from rank r. The second half of `direct`.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of `n_ranks` chunks and one round (none for one rank).

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> len(direct_all_gather(4).rounds)
        1

    """
    return Schedule("direct_all_gather", n_ranks, n_ranks, direct(n_ranks).rounds[1:])


@algorithm(goal="broadcast")
def naive_broadcast(n_ranks: int, root: int = 0) -> Schedule:
    """Broadcast in one round: the root sends its whole message to everyone.

    Args:
        n_ranks: Number of ranks, 1 or more.
        root: The rank that has the message.

    Returns:
        A schedule of one chunk and one round (none for one rank).

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up, or the root is no rank.

    Example:
        >>> [transfer.dst for transfer in naive_broadcast(3, root=1).rounds[0]]
        [2, 0]

    """
    return rotated(Schedule("naive_broadcast", n_ranks, 1, naive(n_ranks).rounds[1:]), root)


@algorithm(goal="reduce")
def naive_reduce(n_ranks: int, root: int = 0) -> Schedule:
    """Reduce in one round: everyone sends its whole message to the root.

    Args:
        n_ranks: Number of ranks, 1 or more.
        root: The rank that gets the sum.

    Returns:
        A schedule of one chunk and one round (none for one rank).

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up, or the root is no rank.

    Example:
        >>> [transfer.src for transfer in naive_reduce(3, root=1).rounds[0]]
        [2, 0]

    """
    return rotated(Schedule("naive_reduce", n_ranks, 1, naive(n_ranks).rounds[:1]), root)
