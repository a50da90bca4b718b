"""Who runs next, and how does one know that nobody ever can? The scheduler of ranks that take turns.

The idea: a rank that pauses leaves a note: whom it waits for, where, and a question that can be asked at any time ("is
there a message?"). The scheduler draws among those whose question is answered with yes. When there is none and not all
have finished, that is a deadlock, and the notes are its description.

    rank 0: waits for rank 2 (ring.py:4)  --> can it go on?  no
    rank 1: waits for rank 0 (ring.py:4)  --> can it go on?  no        so: deadlock, with three lines
    rank 2: waits for rank 1 (ring.py:4)  --> can it go on?  no

Costs: one question for each waiting rank and turn. Leaves out: trying *all* orders; seeds draw some.
"""

from __future__ import annotations

import collections
import random
import time
from collections.abc import Callable

from tfdistedu.collectives.trace import Record
from tfdistedu.errors import DeadlineExceeded, TfdisteduError
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


class World:
    """All that the ranks share; only the thread that holds the baton touches it.

    Attributes:
        n_ranks: How many ranks there are.
        seed: Which order.
        rendezvous: Whether `send` waits until its message is taken.
        mail: From (src, dst) to the messages that lie there, oldest first.
        posted: From (src, dst) to how many messages were sent.
        taken: From (src, dst) to how many of them were received.
        records: One record for each message, in the order of sending.
        threads: One thread a rank.
        waits: From each rank that waits to whom it waits for, in words, where, and whether it can go on.
    """

    n_ranks: int
    seed: int
    rendezvous: bool
    mail: dict[tuple[int, int], collections.deque]
    posted: dict[tuple[int, int], int]
    taken: dict[tuple[int, int], int]
    records: list[Record]
    threads: list[RankThread]
    waits: dict[int, tuple[int, str, Place, Callable[[], bool]]]

    def __init__(self, n_ranks: int, seed: int, rendezvous: bool) -> None:
        """Make an empty world; the threads are put in later.

        Args:
            n_ranks: How many ranks there are.
            seed: Which order.
            rendezvous: Whether `send` waits until its message is taken.

        """
        self.n_ranks, self.seed, self.rendezvous = n_ranks, seed, rendezvous
        self.mail = collections.defaultdict(collections.deque)
        self.posted, self.taken = collections.Counter(), collections.Counter()
        self.records, self.threads, self.waits = [], [], {}

    def pause(self, rank: int, peer: int, text: str, can_go: Callable[[], bool]) -> None:
        """Give the baton back, and return with it when the rank can go on and is drawn.

        Args:
            rank: Who waits.
            peer: For whom.
            text: In words: "waits for a message from rank 2".
            can_go: Tells whether it can go on.

        """
        self.waits[rank] = (peer, text, place_of_caller(), can_go)
        self.threads[rank].pause()
        del self.waits[rank]

    def able(self) -> list[int]:
        """Find out who can go on.

        Returns:
            The ranks.

        """
        return [
            t.rank for t in self.threads if not t.finished and (t.rank not in self.waits or self.waits[t.rank][3]())
        ]

    def deadlock(self) -> Deadlock:
        """Say who waits for whom, in which line.

        Returns:
            The error to raise.

        """
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


def drive(world: World, end: float, deadline: float) -> None:
    """Draw who goes on, until all have finished.

    Args:
        world: The ranks and their threads.
        end: When to give up, on `time.monotonic`'s clock.
        deadline: The same as a number of seconds, for the message.

    Raises:
        Deadlock: Nobody can go on.
        RankFailed: A rank's program raised an exception.
        DeadlineExceeded: The end has come.

    """
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
