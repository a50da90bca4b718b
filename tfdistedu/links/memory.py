"""How can one see what a rank's program does, in every order, without a cluster? All ranks in one process, by turns.

The idea: each rank is a thread, and there is one baton. Who holds it runs until it sends or receives; then the
scheduler draws who goes on. So a program runs in a known order (the seed), other seeds are other orders, and when
nobody can go on the scheduler knows it at once, and says who waits for whom, in which line.

    rank 0   send ----------+ recv.......waits........ +------> done
    rank 1                  +--------> send  recv -----+
                    the baton moves at every send and recv

A program needs no more than this:

    def program(link, x):
        right, left = (link.rank + 1) % link.n_ranks, (link.rank - 1) % link.n_ranks
        link.send(x, right)
        return link.recv(left)

`send` copies, and never waits: the message lies in a mailbox until it is taken. With `rendezvous=True` it waits until
the receiver takes it, as MPI may do for long messages: then this ring is a deadlock. `give` never waits for its takers.

Costs: two switches of threads for each send and recv, some 20 microseconds.

Leaves out: speed, and messages from anyone (`recv` names its sender, so results do not depend on the order).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfdistedu.collectives.plan import Message, Step
from tfdistedu.collectives.trace import Record
from tfdistedu.errors import BadInput, TfdisteduError
from tfdistedu.links.baton import RankThread
from tfdistedu.links.scheduler import Deadlock, RankFailed, World, drive

__all__ = ["Deadlock", "MemoryLink", "RankFailed", "Run", "run_ranks", "try_orders"]


@dataclass
class Run:
    """What came out of a run.

    Attributes:
        results: What each rank's program returned.
        records: What was sent, in that order. `give` leaves one record for each transfer, as the plain executor does;
            `send` leaves one for each message, and its `round` is how many the sender had sent before.
    """

    results: list[Any]
    records: list[Record]


class MemoryLink:
    """One rank's end: `send` and `recv` for programs, `give` and `take` for executors.

    Attributes:
        rank: The rank at this end.
        n_ranks: How many ranks there are.
    """

    rank: int
    n_ranks: int

    def __init__(self, rank: int, world: World) -> None:
        """Make one end; `run_ranks` does it.

        Args:
            rank: The rank at this end.
            world: What all ranks share.

        """
        self.rank = rank
        self.n_ranks = world.n_ranks
        self._world = world
        self._window: np.ndarray | None = None
        self._bounds: Sequence[int] = ()
        self._sent = 0

    def send(self, array: Any, dst: int) -> None:
        """Send a copy of an array to another rank.

        Args:
            array: An array or number, of any shape and type but objects.
            dst: The rank that gets it.

        Raises:
            BadInput: `dst` is no other rank, or this is no array.

        """
        value = np.array(array)
        if value.dtype.hasobject:
            raise BadInput(f"rank {self.rank} sends {array!r} to rank {dst}: only arrays of numbers can be sent.")
        self._check_peer(dst, "sends to")
        self._world.records.append(Record(self._sent, self.rank, dst, None, None, value.nbytes))
        self._sent += 1
        self._post(value, dst, "an array that was sent", self._world.rendezvous)

    def recv(self, src: int) -> np.ndarray:
        """Return the next array that a rank sent to this one; wait for it.

        Args:
            src: The rank that sends it.

        Returns:
            The array; nobody else holds it, so it may be changed.

        Raises:
            BadInput: `src` is no other rank.

        """
        self._check_peer(src, "receives from")
        return self._fetch(src, "an array that was sent")

    def open(self, window: np.ndarray, bounds: Sequence[int]) -> None:
        """Take note of the rank's window.

        Args:
            window: Slots × elements.
            bounds: Where chunks begin and end.

        """
        self._window, self._bounds = window, bounds

    def give(self, step: Step) -> None:
        """Send the messages of a step, as copies; so there are no readers to wait for.

        Args:
            step: The rank's step of the plan.

        """
        for m in step.sends:
            value = self._window[m.src_slot, self._bounds[m.first] : self._bounds[m.stop]].copy()
            for chunk in range(m.first, m.stop):
                n_bytes = (self._bounds[chunk + 1] - self._bounds[chunk]) * value.itemsize
                self._world.records.append(Record(step.round, m.src, m.dst, chunk, m.reduce, n_bytes))
            self._post(value, m.dst, self._tag(m), waits=False)

    def take(self, message: Message) -> np.ndarray:
        """Return the chunks of a message; wait for them.

        Args:
            message: One of the step's `takes`.

        Returns:
            The chunks, one-dimensional.

        Raises:
            TfdisteduError: Something else came: the ranks do not run the same plans in the same order.

        """
        return self._fetch(message.src, self._tag(message))

    def close(self) -> None:
        """Forget the window: nobody else ever sees it."""
        self._window = None

    def _check_peer(self, peer: int, verb: str) -> None:
        """Refuse a peer that is no other rank."""
        if peer not in range(self.n_ranks):
            raise BadInput(
                f"rank {self.rank} {verb} rank {peer!r}: ranks are called 0 .. {self.n_ranks - 1}; is a % missing?"
            )
        if peer == self.rank:
            raise BadInput(f"rank {self.rank} {verb} itself: it has its own data already.")

    def _tag(self, m: Message) -> str:
        """Say which message this is, and how long."""
        size = self._bounds[m.stop] - self._bounds[m.first]
        return f"chunk {m.first} to {m.stop - 1} with {size} elements, {'to add' if m.reduce else 'to take over'}"

    def _post(self, value: np.ndarray, dst: int, what: str, waits: bool) -> None:
        """Put a message into a mailbox, and give the baton back; go on at once, or when the message is taken."""
        world, pair = self._world, (self.rank, dst)
        world.mail[pair].append((what, value))
        world.posted[pair] += 1
        number = world.posted[pair]
        text = f"waits until rank {dst} takes its message"
        world.pause(self.rank, dst, text, lambda: not waits or world.taken[pair] >= number)

    def _fetch(self, src: int, what: str) -> np.ndarray:
        """Wait for the next message of a rank, and check that it is the one that is due."""
        world, mailbox = self._world, self._world.mail[src, self.rank]
        world.pause(self.rank, src, f"waits for a message from rank {src}", lambda: bool(mailbox))
        world.taken[src, self.rank] += 1
        came, value = mailbox.popleft()
        if came != what:
            raise TfdisteduError(
                f"rank {self.rank} waits for {what} from rank {src}, and {came} came: do all ranks call the same "
                "collectives, on arrays of the same length, in the same order?"
            )
        return value


def run_ranks(
    program: Callable[[MemoryLink, Any], Any],
    inputs: Sequence[Any],
    seed: int = 0,
    deadline: float = 10.0,
    rendezvous: bool = False,
) -> Run:
    """Run a program on all ranks, one at a time, in the order that the seed draws.

    Args:
        program: A function of (link, input); what it returns is the rank's result.
        inputs: One input a rank; it is passed on as it is, not copied.
        seed: Which order.
        deadline: Seconds after which the run is ended, whatever it does.
        rendezvous: Whether `send` waits until its message is taken.

    Returns:
        The results and the records.

    Raises:
        BadInput: There is no input, so there is no rank.
        Deadlock: Nobody can go on.
        RankFailed: A rank's program raised an exception.
        DeadlineExceeded: The deadline passed; the message says where the rank that ran was.
        TfdisteduError: A message was sent and never received.

    Example:
        >>> def swap(link, x):
        ...     link.send(x, 1 - link.rank)
        ...     return link.recv(1 - link.rank)
        >>> run_ranks(swap, [np.array([1]), np.array([2])]).results
        [array([2]), array([1])]

    """
    if len(inputs) == 0:
        raise BadInput("there is no rank: give one input for each rank, at least one.")
    world = World(len(inputs), seed, rendezvous)
    links = [MemoryLink(rank, world) for rank in range(len(inputs))]
    world.threads = [
        RankThread(rank, lambda link=link, x=x: program(link, x))
        for rank, (link, x) in enumerate(zip(links, inputs, strict=True))
    ]
    try:
        drive(world, time.monotonic() + deadline, deadline)
    finally:
        for thread in world.threads:
            thread.stop()
    for (src, dst), mailbox in sorted(world.mail.items()):
        if mailbox:
            raise TfdisteduError(f"rank {src} sent {len(mailbox)} message(s) to rank {dst} that it never received.")
    return Run([thread.result for thread in world.threads], world.records)


def try_orders(
    program: Callable[[MemoryLink, Any], Any],
    make_inputs: Callable[[], Sequence[Any]],
    orders: int = 20,
    deadline: float = 10.0,
    rendezvous: bool = False,
) -> Run:
    """Run a program in several orders; all must give the same bits.

    Args:
        program: A function of (link, input) that returns an array.
        make_inputs: Returns fresh inputs, one a rank; called once for each order.
        orders: How many orders: the seeds 0 .. orders - 1.
        deadline: Seconds for all orders together.
        rendezvous: Whether `send` waits until its message is taken.

    Returns:
        The run of the first order.

    Raises:
        TfdisteduError: As `run_ranks`; or a result depends on the order, which means that ranks share something.

    Example:
        >>> def total(link, x):
        ...     link.send(x, 1 - link.rank)
        ...     return x + link.recv(1 - link.rank)
        >>> try_orders(total, lambda: [np.array([1]), np.array([2])]).results
        [array([3]), array([3])]

    """
    end = time.monotonic() + deadline
    runs = []
    for seed in range(orders):
        runs.append(run_ranks(program, make_inputs(), seed, max(end - time.monotonic(), 0.0), rendezvous))
        for rank, (first, here) in enumerate(zip(runs[0].results, runs[-1].results, strict=True)):
            if np.asarray(first).tobytes() != np.asarray(here).tobytes():
                raise TfdisteduError(
                    f"rank {rank} gets another result with seed={seed} than with seed=0: do ranks share an array or a "
                    "variable? Each may touch only its own input and what it receives."
                )
    return runs[0]
