"""Can all ranks work in every round? Yes: pairs exchange, and what each knows doubles.

The idea of recursive doubling: in round k, rank r exchanges its whole sum with the rank whose number differs in bit k.
The idea of halving-doubling (Rabenseifner): exchange only the half that the other will own, halve again, and later
double back. The messages shrink 1/2, 1/4, ... and grow again.

    recursive doubling, four ranks               halving-doubling, four ranks, four chunks

    round 1   0 <--> 1      2 <--> 3             round 1   0 <--> 2, 1 <--> 3: two chunks each way, added
    round 2   0 <--> 2      1 <--> 3             round 2   0 <--> 1, 2 <--> 3: one chunk; rank r owns chunk r
              (each time the whole sum)          round 3   0 <--> 1, 2 <--> 3: one chunk, taken over
                                                 round 4   0 <--> 2, 1 <--> 3: two chunks, taken over

Other numbers of ranks: with p the largest power of two that is not above n, the n - p extra ranks first hand their
message to a neighbour, wait, and get the result at the end.

Costs, for n = p: recursive doubling log2(n) rounds of a whole message; halving-doubling 2 log2(n) rounds and
2(p - 1)/p of the message, as few bytes as the ring in far fewer rounds. For other n, two more rounds, each of
a whole message.

Leaves out: spreading the extra ranks' work over both partners (Rabenseifner 2004), which halves the price of
those two rounds.

Sources: Thakur, Rabenseifner and Gropp (2005), "Optimization of Collective Communication Operations in MPICH", section
4 (reduce and all-reduce). R. Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.
"""

from __future__ import annotations

from tfdistedu.collectives.algorithms.registry import algorithm
from tfdistedu.collectives.schedule import Schedule, Transfer


def _fold(n_ranks: int, n_chunks: int) -> tuple[list[int], list[list[Transfer]], list[list[Transfer]]]:
    """Return the ranks that stay (a power of two of them), and the rounds before and after their work.

    The first 2(n - p) ranks pair up: the odd one hands its message to the even one and gets the result at the end. When
    n is a power of two there is nothing to fold, and both lists of rounds are empty.
    """
    power = 2 ** (n_ranks.bit_length() - 1)
    extra = n_ranks - power
    stay = [2 * i for i in range(extra)] + list(range(2 * extra, n_ranks))
    before = [Transfer(2 * i + 1, 2 * i, c, True) for i in range(extra) for c in range(n_chunks)]
    after = [Transfer(2 * i, 2 * i + 1, c, False) for i in range(extra) for c in range(n_chunks)]
    return stay, [before] if extra else [], [after] if extra else []


@algorithm
def recursive_doubling(n_ranks: int) -> Schedule:
    """All-reduce by exchanging the whole sum with ever more distant partners: the fewest rounds.

    Both partners of an exchange add in the same order (the lower rank's value is left), so all hold the same bits.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of one chunk and log2(p) rounds, two more when `n_ranks` is not a power of two.

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> [[transfer[:2] for transfer in transfers] for transfers in recursive_doubling(4).rounds]
        [[(1, 0), (0, 1), (3, 2), (2, 3)], [(2, 0), (3, 1), (0, 2), (1, 3)]]

    """
    # Step 1: fold. Leave a power of two, so that everybody always has a partner.
    stay, rounds, after = _fold(n_ranks, n_chunks=1)
    # Step 2: exchange and add. Partners differ in one bit; after round k each holds the sum of 2^(k + 1) ranks.
    for k in range(len(stay).bit_length() - 1):
        rounds.append([Transfer(stay[i ^ 2**k], stay[i], 0, True) for i in range(len(stay))])
    # Step 3: unfold. Who handed its message in gets the result.
    return Schedule("recursive_doubling", n_ranks, 1, rounds + after)


@algorithm
def halving_doubling(n_ranks: int) -> Schedule:
    """All-reduce by recursive halving (reduce-scatter) and recursive doubling (all-gather): few rounds and few bytes.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        A schedule of p chunks and 2 log2(p) rounds, two more when `n_ranks` is not a power of two.

    Raises:
        BadInput: `n_ranks` is no whole number from 1 up.

    Example:
        >>> [len(transfers) for transfers in halving_doubling(4).rounds]
        [8, 4, 4, 8]

    """
    power = 2 ** (n_ranks.bit_length() - 1)
    # Step 1: fold. Leave a power of two, and cut the message into as many chunks.
    stay, rounds, after = _fold(n_ranks, n_chunks=power)
    distances = [2**k for k in reversed(range(power.bit_length() - 1))]
    # Step 2: halve. Partners lie d apart; each sends the half that the other keeps, d chunks, and adds what comes.
    for d in distances:
        rounds.append([Transfer(stay[i ^ d], stay[i], c, True) for i in range(power) for c in _block(i, d)])
    # Step 3: double. The same partners in the opposite order; each takes over the d chunks that the other has finished.
    for d in reversed(distances):
        rounds.append([Transfer(stay[i ^ d], stay[i], c, False) for i in range(power) for c in _block(i ^ d, d)])
    # Step 4: unfold. Who handed its message in gets the result.
    return Schedule("halving_doubling", n_ranks, power, rounds + after)


def _block(i: int, d: int) -> range:
    """Return the d neighbouring chunks that rank i works on when partners lie d apart."""
    return range(i // d * d, i // d * d + d)
