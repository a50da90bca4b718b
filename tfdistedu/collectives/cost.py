"""What does a schedule cost? Count its messages and bytes, then multiply by what a link charges.

The idea (Hockney): a message of m bytes takes latency + m / bandwidth. A rank has one port for each direction: what it
sends in one round goes out one message after another, and so does what comes in; both directions run at once. A round
ends when its busiest port is done.

    seconds = latency * messages + bytes / bandwidth + reduced / reduction speed

    round 1  | o==== o====      |     a port with two messages: o is the latency, ==== the bytes
    round 2  |            o==== |

`messages`, `bytes` and `reduced` are sums over rounds, each time of the rank that is busiest in that round. Bytes are
counted as parts of the message, as exact fractions: a ring sends 2(n - 1)/n of it, and no all-reduce can send less
(Patarasuk and Yuan, who prove it for what each rank must send).

Costs: one look at each transfer. Leaves out: links that share a switch or a socket; messages of one rank that overlap,
which is all that `direct` has over the ring (here the two cost the same); overlap of rounds; pieces.

Sources: R. Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20 (1994);
P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of Parallel
and Distributed Computing 69 (2009).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import NamedTuple

from tfdistedu.collectives.schedule import Schedule, Transfer
from tfdistedu.errors import BadInput


class Price(NamedTuple):
    """What the busiest ports do, summed over the rounds.

    Attributes:
        n_rounds: Number of rounds.
        messages: Messages of the busiest port, round by round; neighbouring chunks to one rank are one message.
        bytes: What goes through the busiest port, as a part of the message: 1 is the whole message.
        reduced: What the busiest rank reduces, as a part of the message.
    """

    n_rounds: int
    messages: int
    bytes: Fraction
    reduced: Fraction

    def seconds(self, n_bytes: float, link: Link) -> float:
        """Return the predicted time of one call.

        Args:
            n_bytes: Size of each rank's message, in bytes.
            link: What the links charge.

        Returns:
            Seconds.

        """
        return (
            self.messages * link.latency
            + float(self.bytes) * n_bytes / link.bandwidth
            + float(self.reduced) * n_bytes / link.reduce_speed
        )


class Link(NamedTuple):
    """What a link charges.

    Attributes:
        latency: Seconds for a message without bytes.
        bandwidth: Bytes per second in one direction (10^9 is 1 GB/s).
        reduce_speed: Bytes of arriving data per second that a rank can reduce into its own.
    """

    latency: float
    bandwidth: float
    reduce_speed: float


PRESETS = {
    "laptop": Link(latency=10e-6, bandwidth=5e9, reduce_speed=10e9),
    "10GbE": Link(latency=30e-6, bandwidth=1.25e9, reduce_speed=10e9),
    "100Gb": Link(latency=3e-6, bandwidth=12.5e9, reduce_speed=20e9),
    "NVLink": Link(latency=2e-6, bandwidth=300e9, reduce_speed=1000e9),
}
"""Round numbers of the right size, not measurements: processes on one machine, two kinds of network, GPUs side by side.

The bandwidths of 10GbE and 100Gb are what their names say, divided by 8. Measure your own before you decide anything.
"""


def price(schedule: Schedule) -> Price:
    """Count what the busiest ports of a schedule do.

    Args:
        schedule: The schedule; all its chunks count as equally long.

    Returns:
        The price.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> price(ring(4))
        Price(n_rounds=6, messages=6, bytes=Fraction(3, 2), reduced=Fraction(3, 4))

    """
    messages = chunks = reduced = 0
    for transfers in schedule.rounds:
        moved: Counter[tuple[str, int]] = Counter()
        adds: Counter[int] = Counter()
        for t in transfers:
            moved["out", t.src] += 1
            moved["in", t.dst] += 1
            adds[t.dst] += t.reduce
        messages += max(_messages(transfers).values(), default=0)
        chunks += max(moved.values(), default=0)
        reduced += max(adds.values(), default=0)
    parts = schedule.n_chunks
    return Price(len(schedule.rounds), messages, Fraction(chunks, parts), Fraction(reduced, parts))


def _messages(transfers: tuple[Transfer, ...]) -> Counter[tuple[str, int]]:
    """Count the messages through each port in one round."""
    chunks: dict[tuple[int, int], set[int]] = defaultdict(set)
    for t in transfers:
        chunks[t.src, t.dst].add(t.chunk)
    count: Counter[tuple[str, int]] = Counter()
    for (src, dst), there in chunks.items():
        begins = sum(chunk - 1 not in there for chunk in there)
        count["out", src] += begins
        count["in", dst] += begins
    return count


def sent_per_rank(schedule: Schedule) -> list[Fraction]:
    """Return how much each rank sends in all, as a part of the message.

    Args:
        schedule: The schedule.

    Returns:
        One number a rank.

    Example:
        >>> from tfdistedu.collectives.algorithms import naive
        >>> [str(part) for part in sent_per_rank(naive(3))]
        ['2', '1', '1']

    """
    count = Counter(t.src for transfers in schedule.rounds for t in transfers)
    return [Fraction(count[rank], schedule.n_chunks) for rank in range(schedule.n_ranks)]


def sent_per_link(schedule: Schedule) -> dict[tuple[int, int], Fraction]:
    """Return how much goes from each rank to each other one, as a part of the message.

    Args:
        schedule: The schedule.

    Returns:
        From (src, dst) to a part of the message, sorted; who is not in it does not talk.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> {link: str(part) for link, part in sent_per_link(ring(3)).items()}
        {(0, 1): '4/3', (1, 2): '4/3', (2, 0): '4/3'}

    """
    count = Counter(t[:2] for transfers in schedule.rounds for t in transfers)
    return {link: Fraction(chunks, schedule.n_chunks) for link, chunks in sorted(count.items())}


def lower_bound(n_ranks: int) -> Fraction:
    """Return what at least one rank must send in any all-reduce, as a part of the message: 2(n - 1)/n.

    Args:
        n_ranks: Number of ranks, 1 or more.

    Returns:
        The bound of Patarasuk and Yuan; rings, `direct` and `halving_doubling` (for powers of two) meet it.

    Raises:
        BadInput: There is no rank.

    Example:
        >>> lower_bound(4)
        Fraction(3, 2)

    """
    if n_ranks < 1:
        raise BadInput(f"n_ranks must be 1 or more, and is {n_ranks}.")
    return Fraction(2 * (n_ranks - 1), n_ranks)


def crossing(one: Price, other: Price, link: Link) -> float | None:
    """Return the size of message for which two algorithms take the same time.

    Both times are straight lines in the size: the one with fewer messages wins below, the one with fewer bytes above.

    Args:
        one: The price of one algorithm.
        other: The price of the other, for the same number of ranks.
        link: What the links charge.

    Returns:
        Bytes; `None` when one of them wins at every size.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring, tree
        >>> size = crossing(price(ring(8)), price(tree(8)), PRESETS["10GbE"])
        >>> round(size / 1e3), price(ring(8)).seconds(size, PRESETS["10GbE"]) > 0
        (66, True)

    """
    start = (one.messages - other.messages) * link.latency
    slope = _per_byte(other, link) - _per_byte(one, link)
    return start / slope if start * slope > 0 else None


def _per_byte(each: Price, link: Link) -> float:
    """Return the seconds that one more byte in the message costs."""
    return float(each.bytes) / link.bandwidth + float(each.reduced) / link.reduce_speed
