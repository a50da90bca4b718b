"""How can n ranks average their gradients with as few bytes as possible? In a ring.

The idea: cut each message into n chunks. In every round, every rank sends one chunk to its right neighbour and receives
one from its left neighbour. First the chunks grow (reduce-scatter), then the finished ones travel on (all-gather).

    four ranks; each letter is the part of one rank, capitals are a finished sum

    chunk     0    1    2    3    | 0    1    2    3    | 0    1    2    3    | 0    1    2    3
    start     a    a    a    a    | b    b    b    b    | c    c    c    c    | d    d    d    d
    round 1   a    a    ad   a    | b    b    b    ab   | bc   c    c    c    | d    cd   d    d
    round 2   a    acd  ad   a    | b    b    abd  ab   | bc   c    c    abc  | bcd  cd   d    d
    round 3   ABCD acd  ad   a    | b    ABCD abd  ab   | bc   c    ABCD abc  | bcd  cd   d    ABCD
    round 4   ABCD acd  ad   ABCD | ABCD ABCD abd  ab   | bc   ABCD ABCD abc  | bcd  cd   ABCD ABCD
    round 5   ABCD acd  ABCD ABCD | ABCD ABCD abd  ABCD | ABCD ABCD ABCD abc  | bcd  ABCD ABCD ABCD
    round 6   ABCD ABCD ABCD ABCD | ABCD ABCD ABCD ABCD | ABCD ABCD ABCD ABCD | ABCD ABCD ABCD ABCD
              rank 0                rank 1                rank 2                rank 3

After round 3, rank r owns chunk r: that is the reduce-scatter. Rounds 4 to 6 are the all-gather.

Costs: 2(n - 1) rounds; every rank sends 2(n - 1)/n of the message, and no all-reduce can send less (Patarasuk and
Yuan). Every byte goes to a neighbour. The price is latency: the number of rounds grows with n.

Leaves out: a second ring in the other direction, and pieces that follow each other through one ring.

Source: P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of
Parallel and Distributed Computing 69 (2009).
"""

from __future__ import annotations

from tfdistedu.collectives.algorithms.registry import algorithm
from tfdistedu.collectives.schedule import Schedule, Transfer


@algorithm
def ring(n_ranks: int) -> Schedule:
    """All-reduce in a ring: the fewest bytes, many rounds, only neighbours talk.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of `n_ranks` chunks and 2(n - 1) rounds.

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> schedule = ring(4)
        >>> len(schedule.rounds), schedule.rounds[0][0]
        (6, Transfer(src=0, dst=1, chunk=3, reduce=True))

    """
    n = n_ranks
    # Step 1: reduce-scatter. Chunk c starts at rank c + 1, walks right and grows by one summand a round, until rank c
    # holds all of it.
    rounds = [[Transfer(r, (r + 1) % n, (r - s - 1) % n, True) for r in range(n)] for s in range(n - 1)]
    # Step 2: all-gather. Rank r now owns chunk r; each finished chunk walks right once more and replaces what it meets.
    rounds += [[Transfer(r, (r + 1) % n, (r - s) % n, False) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring", n, n, rounds)


# --8<-- [start:reduce_scatter]
@algorithm(goal="reduce_scatter")
def ring_reduce_scatter(n_ranks: int) -> Schedule:
    """Reduce-scatter in a ring: afterwards rank r owns the sum of chunk r. The first half of `ring`.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of `n_ranks` chunks and n - 1 rounds; every rank sends (n - 1)/n of the message.

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> (ring_reduce_scatter(4) + ring_all_gather(4)).rounds == ring(4).rounds
        True

    """
    n = n_ranks
    # Step 1: n - 1 hops to the right. Chunk c passes every rank but its owner, and ends at its owner, rank c.
    rounds = [[Transfer(r, (r + 1) % n, (r - s - 1) % n, True) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring_reduce_scatter", n, n, rounds)


# --8<-- [end:reduce_scatter]


# --8<-- [start:all_gather]
@algorithm(goal="all_gather")
def ring_all_gather(n_ranks: int) -> Schedule:
    """All-gather in a ring: rank r starts with chunk r, and afterwards all have all. The second half of `ring`.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of `n_ranks` chunks and n - 1 rounds; every rank sends (n - 1)/n of the whole.

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> ring_all_gather(3).rounds[0]  # doctest: +NORMALIZE_WHITESPACE
        (Transfer(src=0, dst=1, chunk=0, reduce=False), Transfer(src=1, dst=2, chunk=1, reduce=False),
         Transfer(src=2, dst=0, chunk=2, reduce=False))

    """
    n = n_ranks
    # Step 1: pass on what came last. In round s rank r sends the chunk that started s ranks to its left.
    rounds = [[Transfer(r, (r + 1) % n, (r - s) % n, False) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring_all_gather", n, n, rounds)


# --8<-- [end:all_gather]
