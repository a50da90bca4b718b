"""What if every rank knows only its two neighbours? A chain, kept busy by cutting the message into chunks.

The idea: sums run down the chain to rank 0 and the result runs up again. With one chunk, all but two ranks would idle;
with many, the next chunk follows at once, as on a conveyor belt.

    four ranks, two chunks x and y: the way down (the way up is the same, turned round)

    round 1    0      1      2 <-x- 3
    round 2    0      1 <-x- 2 <-y- 3
    round 3    0 <-x- 1 <-y- 2      3
    round 4    0 <-y- 1      2      3

Costs, with c chunks: 2(c + n - 2) rounds, and 1/c of a message in each. With many chunks a rank is busy nearly always
and the bytes approach two messages, for any n; with few, the length of the chain shows.

Leaves out: starting the way up while the way down still runs, and choosing c by the size of the message.

Source: the schedule is ours, from the textbook pipeline.
"""

from __future__ import annotations

from tfdistedu.collectives.algorithms.registry import algorithm, rotated, whole_number
from tfdistedu.collectives.schedule import Schedule, Transfer


@algorithm
def chain(n_ranks: int, n_chunks: int = 4) -> Schedule:
    """All-reduce along a chain, pipelined: down to rank 0 with the sums, up with the result.

    Args:
        n_ranks: Number of ranks, 1 or more.
        n_chunks: Into how many chunks the message is cut; more keep more ranks busy, in more rounds.

    Returns:
        A schedule of 2(n_chunks + n - 2) rounds (none for one rank).

    Raises:
        BadInput: `n_ranks` or `n_chunks` is no whole number from 1 up.

    Example:
        >>> [len(transfers) for transfers in chain(4, n_chunks=2).rounds]
        [1, 2, 2, 1, 1, 2, 2, 1]

    """
    up = chain_broadcast(n_ranks, n_chunks).rounds
    # Step 1: down. Chunk c leaves the last rank in round c and moves one rank a round; everybody adds its own part.
    # That is the way up with every arrow turned round and the clock running backwards.
    down = [[Transfer(t.dst, t.src, n_chunks - 1 - t.chunk, True) for t in transfers] for transfers in reversed(up)]
    # Step 2: up. Rank 0 holds the sums; they travel back in the same manner and replace what they meet.
    return Schedule("chain", n_ranks, n_chunks, [*down, *up])


@algorithm(goal="broadcast")
def chain_broadcast(n_ranks: int, n_chunks: int = 4, root: int = 0) -> Schedule:
    """Broadcast from the root along a chain, pipelined.

    Args:
        n_ranks: Number of ranks, 1 or more.
        n_chunks: Into how many chunks the message is cut.
        root: The rank that has the message; the chain runs root, root + 1, ... and past the last rank to 0.

    Returns:
        A schedule of n_chunks + n - 2 rounds (none for one rank).

    Raises:
        BadInput: `n_ranks` or `n_chunks` is no whole number from 1 up, or the root is no rank.

    Example:
        >>> [[transfer[:3] for transfer in transfers] for transfers in chain_broadcast(3, n_chunks=2).rounds]
        [[(0, 1, 0)], [(0, 1, 1), (1, 2, 0)], [(1, 2, 1)]]

    """
    n_chunks = whole_number(n_chunks, "n_chunks")
    n_rounds = n_chunks + n_ranks - 2 if n_ranks > 1 else 0
    # Step 1: a conveyor belt. Rank r passes chunk c on in round c + r, one round after it came.
    rounds = [
        [Transfer(r, r + 1, s - r, False) for r in range(n_ranks - 1) if 0 <= s - r < n_chunks] for s in range(n_rounds)
    ]
    return rotated(Schedule("chain_broadcast", n_ranks, n_chunks, rounds), root)
