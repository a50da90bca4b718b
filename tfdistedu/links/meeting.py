"""How does a job hang in a collective, and who waits for whom? All ranks in one process, and a call that all must make.

The idea: the k-th all-reduce of one rank belongs to the k-th of every other: they are matched by their order, as in
TensorFlow, and not by what was meant. A rank waits in its call k until all others have made theirs. When nobody can go
on, the calls that were made say who waits for whom.

    rank 0   gradient  loss  gradient  loss  <- waits in call 3 ...
    rank 1   gradient  loss  gradient           ... for rank 1, which has finished

A program needs `group.rank`, `group.n_ranks` and one verb:

    def program(group, x):
        return group.all_reduce("gradient", x)

With `by_name`, calls that meet under two names are an error at once. Without it they are added up, as TensorFlow does:
right shapes, wrong numbers, and a hang later, far from its cause.

Costs: two switches of threads a call. Leaves out: bytes and links; a sum is taken when the last rank has come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfdistedu.errors import BadInput, TfdisteduError
from tfdistedu.links.baton import RankThread, place_of_caller
from tfdistedu.links.scheduler import Deadlock, RankFailed, World, drive

__all__ = ["Call", "Group", "Hang", "Meetings", "WrongMeeting", "run_group"]


class Hang(Deadlock):
    """Nobody can go on: each rank that has not finished waits in a collective.

    Attributes:
        waits_for: From each rank that waits to the ranks that have not made the call.
        finished: The ranks whose programs have ended.
    """

    waits_for: dict[int, tuple[int, ...]]
    finished: tuple[int, ...]


class WrongMeeting(TfdisteduError):
    """Two ranks meet in one call and mean different things.

    Attributes:
        number: Which call, from 0.
        ranks: The two ranks.
        names: What each calls it.
    """

    number: int
    ranks: tuple[int, int]
    names: tuple[str, str]


@dataclass(frozen=True)
class Call:
    """One call of one rank: its name, its value, and the line it stands in."""

    name: str
    value: np.ndarray
    place: str


@dataclass
class Meetings:
    """What came out of a run.

    Attributes:
        results: What each rank's program returned.
        calls: Each rank's calls, in order.
    """

    results: list[Any] = field(default_factory=list)
    calls: list[list[Call]] = field(default_factory=list)


class _World(World):
    """What the ranks share: their calls."""

    def __init__(self, n_ranks: int, seed: int, by_name: bool, calls: list[list[Call]]) -> None:
        """Make a world without calls."""
        super().__init__(n_ranks, seed, rendezvous=False)
        self.by_name, self.calls = by_name, calls

    def deadlock(self) -> Hang:
        """Say who waits for whom, in which call and line."""
        lines, waits_for = [], {}
        finished = tuple(thread.rank for thread in self.threads if thread.finished)
        for rank in sorted(self.waits):
            number = len(self.calls[rank]) - 1
            call = self.calls[rank][number]
            waits_for[rank] = tuple(r for r in range(self.n_ranks) if len(self.calls[r]) <= number)
            missing = ", ".join(f"rank {r}" + ", which has finished" * (r in finished) for r in waits_for[rank])
            lines.append(f"  rank {rank} waits in call {number}, {call.name!r}, for {missing}: {call.place}")
        error = Hang("nobody can go on.\n" + "\n".join(lines) + "\nAll ranks make the same calls, in the same order.")
        error.waits_for, error.finished, error.seed = waits_for, finished, self.seed
        error.waiting = {rank: ranks[0] for rank, ranks in waits_for.items()}
        error.lines = {rank: self.calls[rank][-1].place for rank in waits_for}
        return error


class Group:
    """One rank's end of the group.

    Attributes:
        rank: The rank at this end.
        n_ranks: How many ranks there are.
    """

    rank: int
    n_ranks: int

    def __init__(self, rank: int, world: _World) -> None:
        """Make one end; `run_group` does it.

        Args:
            rank: The rank at this end.
            world: What all ranks share.

        """
        self.rank, self.n_ranks, self._world = rank, world.n_ranks, world

    def all_reduce(self, name: str, value: Any) -> Any:
        """Add a value up over all ranks; wait until all have made this call.

        Args:
            name: What it is, for people.
            value: A number or array; of one shape on all ranks.

        Returns:
            The sum in float64, the same on all ranks: a number for a number.

        Raises:
            WrongMeeting: Another rank meets this call with another shape or, if names count, another name.

        """
        world, calls = self._world, self._world.calls
        call = Call(name, np.array(value, np.float64), str(place_of_caller()))
        number = len(calls[self.rank])
        calls[self.rank].append(call)
        for rank in range(self.n_ranks):
            if len(calls[rank]) > number:
                self._check(number, rank, calls[rank][number], call)
        world.pause(self.rank, self.rank, "", lambda: all(len(made) > number for made in calls))
        total = np.sum([made[number].value for made in calls], axis=0)
        return total if call.value.ndim else float(total)

    def _check(self, number: int, rank: int, there: Call, here: Call) -> None:
        """Refuse a call that another rank means otherwise."""
        same_name = there.name == here.name or not self._world.by_name
        if same_name and there.value.shape == here.value.shape:
            return
        what = [f"{c.name!r}" if not same_name else f"{c.name!r} of shape {c.value.shape}" for c in (there, here)]
        error = WrongMeeting(
            f"in call {number} rank {rank} and rank {self.rank} mean different things: {what[0]} and {what[1]}. Calls "
            "are matched by their order alone, so all ranks must make the same ones in the same order.\n"
            f"  rank {rank}: {there.place}\n  rank {self.rank}: {here.place}"
        )
        error.number, error.ranks, error.names = number, (rank, self.rank), (there.name, here.name)
        raise error


def run_group(
    program: Callable[[Group, Any], Any],
    inputs: Sequence[Any],
    seed: int = 0,
    deadline: float = 10.0,
    by_name: bool = True,
    calls: list[list[Call]] | None = None,
) -> Meetings:
    """Run a program on all ranks, one at a time, in the order that the seed draws.

    Args:
        program: A function of (group, input).
        inputs: One input a rank.
        seed: Which order.
        deadline: Seconds after which the run is ended, whatever it does.
        by_name: Whether calls that meet must have one name.
        calls: A list that is filled with each rank's calls, for those who want them after a hang too.

    Returns:
        The results and the calls.

    Raises:
        BadInput: There is no input, so there is no rank.
        Hang: Nobody can go on; the message says who waits for whom.
        WrongMeeting: Two ranks meet in one call and mean different things.
        RankFailed: A rank's program raised an exception.

    Example:
        >>> run_group(lambda group, x: group.all_reduce("sum", x), [1, 2, 3]).results
        [6.0, 6.0, 6.0]
        >>> run_group(lambda group, x: group.rank or group.all_reduce("loss", x), [1, 2])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        tfdistedu.links.meeting.Hang: nobody can go on.
          rank 0 waits in call 0, 'loss', for rank 1, which has finished: <doctest ...

    """
    if len(inputs) == 0:
        raise BadInput("there is no rank: give one input for each rank, at least one.")
    calls = [] if calls is None else calls
    calls[:] = [[] for _ in inputs]
    world = _World(len(inputs), seed, by_name, calls)
    world.threads = [
        RankThread(rank, lambda rank=rank, x=x: program(Group(rank, world), x)) for rank, x in enumerate(inputs)
    ]
    try:
        drive(world, time.monotonic() + deadline, deadline)
    except RankFailed as failed:
        if isinstance(failed.__cause__, WrongMeeting):
            raise failed.__cause__ from None
        raise
    finally:
        for thread in world.threads:
            thread.stop()
    return Meetings([thread.result for thread in world.threads], calls)
