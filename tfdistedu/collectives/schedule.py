"""What is a collective? A schedule: rounds of transfers, and nothing else.

The idea: "who sends which part to whom, and when" is data. One schedule is read by the verifier, the plain executor,
the planner of the fast links, the cost model and the pictures. None of them knows any algorithm.

    a message of one rank, cut into chunks        a round: transfers that happen at the same time

        +------+------+------+------+               rank 0 --chunk 3--> rank 1
        |  0   |  1   |  2   |  3   |               rank 1 --chunk 0--> rank 2     (each reads what stood
        +------+------+------+------+               rank 2 --chunk 1--> rank 3      at the round's start)
                                                    rank 3 --chunk 2--> rank 0

The rules (`tfdistedu.collectives.verify` checks them, every executor relies on them):

1. All transfers of a round read what stood at its start, and land together.
2. Into one chunk of one rank, a round brings either one take-over or any number of reductions. Reductions happen in
   the order in which they are listed.
3. A reduction puts the receiver's own value left and the arriving value right: own + arriving. Only when two ranks
   exchange a chunk (each sends it to the other in one round) the lower rank's value is left on both.
4. `src != dst`, all indices are in range, and no transfer stands twice in a round.

Costs: a schedule for n ranks holds O(n * rounds) small tuples; see `tfdistedu.collectives.cost` for the running cost.

Leaves out: numbers. How many elements a chunk has is decided by `chunk_bounds` when there is an array to send.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import NamedTuple

from tfdistedu.errors import BadInput

GOALS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce")
"""What a schedule can be for. `tfdistedu.collectives.verify` says what each starts from and must reach."""


class Transfer(NamedTuple):
    """Rank `src` sends a chunk to rank `dst`, which reduces it into its own or takes it over.

    Attributes:
        src: The rank that sends.
        dst: The rank that receives.
        chunk: Which chunk; the same index at both ends.
        reduce: True: `dst` combines the chunk with its own (a sum, say). False: `dst` takes it over.

    Example:
        >>> Transfer(src=0, dst=1, chunk=3, reduce=True)
        Transfer(src=0, dst=1, chunk=3, reduce=True)

    """

    src: int
    dst: int
    chunk: int
    reduce: bool


@dataclass(frozen=True)
class Schedule:
    """Rounds of transfers between `n_ranks` ranks, each of which holds `n_chunks` chunks.

    Attributes:
        name: What pictures and errors call it.
        n_ranks: How many ranks take part, 1 or more; ranks are 0 .. n_ranks - 1.
        n_chunks: Into how many chunks each rank's message is cut, 1 or more.
        rounds: The rounds, each a tuple of transfers. Lists, and plain tuples of four, are converted.

    Raises:
        BadInput: A number is no whole number, or a transfer is none.

    Example:
        >>> schedule = Schedule("swap", n_ranks=2, n_chunks=1, rounds=[[(0, 1, 0, True), (1, 0, 0, True)]])
        >>> len(schedule.rounds), schedule.rounds[0][1].src
        (1, 1)

    """

    name: str
    n_ranks: int
    n_chunks: int
    rounds: tuple[tuple[Transfer, ...], ...]

    def __post_init__(self) -> None:
        """Freeze the rounds, so that a schedule can be a key in a cache."""
        try:
            object.__setattr__(self, "n_ranks", index(self.n_ranks))
            object.__setattr__(self, "n_chunks", index(self.n_chunks))
        except TypeError:
            raise BadInput(
                f"{self.name}: n_ranks is {self.n_ranks!r} and n_chunks {self.n_chunks!r}; both must be whole numbers."
            ) from None
        rounds = []
        for number, transfers in enumerate(self.rounds):
            try:
                rounds.append(tuple(_transfer(*transfer) for transfer in transfers))
            except TypeError:
                raise BadInput(
                    f"{self.name}, round {number}: a transfer is Transfer(src, dst, chunk, reduce) with three whole "
                    f"numbers (r // 2 is one, r / 2 is none); this round is {transfers!r}."
                ) from None
        object.__setattr__(self, "rounds", tuple(rounds))

    def __add__(self, other: Schedule) -> Schedule:
        """Return the schedule that does this one and then the other: reduce-scatter + all-gather = all-reduce."""
        if not isinstance(other, Schedule):
            return NotImplemented
        if (self.n_ranks, self.n_chunks) != (other.n_ranks, other.n_chunks):
            raise BadInput(
                f"{self.name} has {self.n_ranks} ranks and {self.n_chunks} chunks, {other.name} has {other.n_ranks} "
                f"and {other.n_chunks}: only schedules of the same shape can follow each other."
            )
        return Schedule(f"{self.name} + {other.name}", self.n_ranks, self.n_chunks, self.rounds + other.rounds)


def _transfer(src: int, dst: int, chunk: int, reduce: bool) -> Transfer:
    """Return a transfer of plain numbers; NumPy's integers are converted, floats raise a TypeError."""
    return Transfer(index(src), index(dst), index(chunk), bool(reduce))


def exchanges(transfers: tuple[Transfer, ...]) -> set[tuple[int, int, int]]:
    """Return the (src, dst, chunk) of all transfers of one round that are half of an exchange.

    Args:
        transfers: One round.

    Returns:
        Both halves of each exchange: (0, 1, c) and (1, 0, c).

    Example:
        >>> sorted(exchanges((Transfer(0, 1, 0, True), Transfer(1, 0, 0, True), Transfer(1, 2, 0, True))))
        [(0, 1, 0), (1, 0, 0)]

    """
    there = {transfer[:3] for transfer in transfers}
    return {(src, dst, chunk) for src, dst, chunk in there if (dst, src, chunk) in there}


def arrives_left(transfer: Transfer, exchanged: set[tuple[int, int, int]]) -> bool:
    """Tell whether the arriving value is the left operand of the reduction (rule 3).

    Args:
        transfer: The transfer.
        exchanged: The `exchanges` of its round.

    Returns:
        True only when the two ranks exchange this chunk and the sender is the lower rank.

    Example:
        >>> swap = (Transfer(0, 1, 0, True), Transfer(1, 0, 0, True))
        >>> [arrives_left(transfer, exchanges(swap)) for transfer in swap]
        [True, False]

    """
    return transfer.src < transfer.dst and transfer[:3] in exchanged


def chunk_bounds(size: int, n_chunks: int, multiple: int = 1) -> list[int]:
    """Cut `size` elements into `n_chunks` chunks whose sizes differ by at most one `multiple`.

    Any size works: when there are fewer elements than chunks, some chunks are empty; nothing is ever dropped.

    Args:
        size: Number of elements, 0 or more.
        n_chunks: Number of chunks, 1 or more.
        multiple: Bounds are multiples of this many elements (the last one is `size`). Fast links take as many
            elements as fill 64 bytes, for unaligned additions are slow. The bounds decide in which order an element is
            added, so two executors give the same bits only with the same bounds.

    Returns:
        `n_chunks + 1` numbers: chunk c is the elements `bounds[c]` up to, not including, `bounds[c + 1]`.

    Raises:
        BadInput: A number is out of range.

    Example:
        >>> chunk_bounds(10, 4)
        [0, 2, 5, 7, 10]
        >>> chunk_bounds(10, 4, multiple=4)
        [0, 0, 4, 8, 10]

    """
    if size < 0 or n_chunks < 1 or multiple < 1:
        raise BadInput(f"cannot cut {size} elements into {n_chunks} chunks in multiples of {multiple}.")
    units = -(-size // multiple)
    return [min(size, multiple * (chunk * units // n_chunks)) for chunk in range(n_chunks + 1)]
