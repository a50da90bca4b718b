"""How can one see what a rank's program does, in every order, without a cluster? All ranks in one process, by turns.

The idea: each rank is a thread, and there is one baton. Who holds it runs until it sends or receives; then the
scheduler draws who goes on. So a program runs in a known order (the seed), other seeds are other orders, and when
nobody can go on the scheduler knows it at once, and says who waits for whom, in which line.

    rank 0   send ----------+ recv.......waits........ +------> done
    rank 1                  +--------> send  recv -----+
                    the baton moves at every send and recv

A learner's ring needs no more than this:

    def program(link, x):
        right, left = (link.rank + 1) % link.n_ranks, (link.rank - 1) % link.n_ranks
        link.send(x, right)
        return link.recv(left)

`send` copies, and never waits: the message lies in a mailbox until it is taken. With `rendezvous=True` it waits until
the receiver takes it, as MPI may do for long messages; a program that is right must work both ways only if it promises
to.

Costs: two switches of threads for each send and recv, some 20 microseconds.

Leaves out: speed, and messages from anyone (`recv` names its sender, so results do not depend on the order).
"""

from __future__ import annotations

import collections
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfdistedu.collectives.plan import Message, Step
from tfdistedu.collectives.trace import Record
from tfdistedu.errors import BadInput, DeadlineExceeded, TfdisteduError
from tfdistedu.links.baton import Place, RankThread, place_of_caller


class Deadlock(TfdisteduError):
    """Nobody can go on: each rank waits for another, or for one that has finished.

    Attributes:
        waiting: From each rank that waits to the rank it waits for.
        lines: From each rank that waits to where: "ring.py:12: x = link.recv(left)".
        seed: The order in which it happened; `run_ranks(..., seed=seed)` shows it again.
    """

    waiting: dict[int, int]
    lines: dict[int, str]
    seed: int


class RankFailed(TfdisteduError):
    """A rank's program raised an exception; it is the `__cause__`.

    Attributes:
        rank: Which rank.
    """

    rank: int


@dataclass
class Run:
    """What came out of a run.

    Attributes:
        results: What each rank's program returned.
        records: One record for each message, in the order of sending; its `round` is how many messages the sender had
            sent before (for `give`, the round of the step).
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

    def __init__(self, rank: int, world: _World) -> None:
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
        self._post(value, dst, Record(self._sent, self.rank, dst, None, None, value.nbytes))
        self._sent += 1

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
        world, mailbox = self._world, self._world.mail[src, self.rank]
        world.pause(self.rank, src, f"waits for a message from rank {src}", lambda: bool(mailbox))
        world.taken[src, self.rank] += 1
        return mailbox.popleft()

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
            self._post(value, m.dst, Record(step.round, m.src, m.dst, m.first, m.reduce, value.nbytes))

    def take(self, message: Message) -> np.ndarray:
        """Return the chunks of a message; wait for them.

        Args:
            message: One of the step's `takes`.

        Returns:
            The chunks, one-dimensional.

        """
        return self.recv(message.src)

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

    def _post(self, value: np.ndarray, dst: int, record: Record) -> None:
        """Put a message into a mailbox, and give the baton back."""
        self._check_peer(dst, "sends to")
        world, pair = self._world, (self.rank, dst)
        world.mail[pair].append(value)
        world.records.append(record)
        world.posted[pair] += 1
        number = world.posted[pair]
        text = f"waits until rank {dst} takes its message"
        world.pause(self.rank, dst, text, lambda: not world.rendezvous or world.taken[pair] >= number)


class _World:
    """All that the ranks share: mailboxes, the baton, the records. Only the thread that holds the baton touches it."""

    def __init__(self, n_ranks: int, seed: int, rendezvous: bool) -> None:
        self.n_ranks, self.seed, self.rendezvous = n_ranks, seed, rendezvous
        self.mail: dict[tuple[int, int], collections.deque] = collections.defaultdict(collections.deque)
        self.posted: dict[tuple[int, int], int] = collections.Counter()
        self.taken: dict[tuple[int, int], int] = collections.Counter()
        self.records: list[Record] = []
        self.threads: list[RankThread] = []
        # What each rank waits for: whom, in words, where, and a function that tells whether it can go on.
        self.waits: dict[int, tuple[int, str, Place, Callable[[], bool]]] = {}

    def pause(self, rank: int, peer: int, text: str, can_go: Callable[[], bool]) -> None:
        """Give the baton back, and return with it when the rank can go on and is drawn."""
        self.waits[rank] = (peer, text, place_of_caller(), can_go)
        self.threads[rank].pause()
        del self.waits[rank]

    def able(self) -> list[int]:
        """Return the ranks that can go on."""
        return [
            t.rank for t in self.threads if not t.finished and (t.rank not in self.waits or self.waits[t.rank][3]())
        ]

    def deadlock(self) -> Deadlock:
        """Say who waits for whom, in which line."""
        lines = []
        for rank, (peer, text, place, _) in sorted(self.waits.items()):
            end = ", which has finished" if self.threads[peer].finished else ""
            lines.append(f"  rank {rank} {text}{end}: {place}")
        error = Deadlock(
            "deadlock: nobody can go on.\n"
            + "\n".join(lines)
            + "\nSend before you receive, and let every message that "
            f"is waited for be sent. This order is seed={self.seed}."
        )
        error.waiting = {rank: wait[0] for rank, wait in self.waits.items()}
        error.lines = {rank: str(wait[2]) for rank, wait in self.waits.items()}
        error.seed = self.seed
        return error


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
    world = _World(len(inputs), seed, rendezvous)
    links = [MemoryLink(rank, world) for rank in range(len(inputs))]
    world.threads = [
        RankThread(rank, lambda link=link, x=x: program(link, x))
        for rank, (link, x) in enumerate(zip(links, inputs, strict=True))
    ]
    try:
        _drive(world, time.monotonic() + deadline, deadline)
    finally:
        for thread in world.threads:
            thread.stop()
    for (src, dst), mailbox in sorted(world.mail.items()):
        if mailbox:
            raise TfdisteduError(f"rank {src} sent {len(mailbox)} message(s) to rank {dst} that it never received.")
    return Run([thread.result for thread in world.threads], world.records)


def _drive(world: _World, end: float, deadline: float) -> None:
    """Draw who goes on, until all have finished."""
    choose = random.Random(world.seed)
    # Fair orders are all alike; a drawn preference lets some ranks rush ahead and others lag behind.
    eager = [choose.random() ** 3 + 0.01 for _ in world.threads]
    while able := world.able():
        thread = world.threads[choose.choices(able, [eager[rank] for rank in able])[0]]
        if not thread.run_until_pause(end - time.monotonic()):
            raise DeadlineExceeded(
                f"rank {thread.rank} did not end within {deadline:g} s; it is at {thread.place()}. Is there a loop "
                "without an end?"
            )
        if thread.error is not None:
            kind, place = type(thread.error).__name__, thread.failed_at
            failure = RankFailed(f"rank {thread.rank}: {kind}: {thread.error} (at {place})")
            failure.rank = thread.rank
            raise failure from thread.error
    if world.waits:
        raise world.deadlock()


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
