"""What does a call need that does not depend on values? Worked out once, kept, and held to the rules.

    shape, type, operation, algorithm  --prepare-->  Todo: text, wide type, how to combine, pieces and their programs
    with Call(...):                    one call at a time, numbered; an error ends the communicator, and is told to all

Costs: some hundred microseconds for a call of a new kind, one dictionary look-up for a known one. Leaves out: what is
called (`tfdistedu.links.communicator`).
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, NamedTuple

import numpy as np

from tfdistedu.collectives.algorithms import schedule_for, tree_broadcast
from tfdistedu.collectives.arithmetic import accumulator, combiner
from tfdistedu.collectives.arrays import as_arrays, as_outputs
from tfdistedu.collectives.plan import Plan, make_plan
from tfdistedu.collectives.verify import verify
from tfdistedu.errors import BadInput, TfdisteduError
from tfdistedu.links.choice import choose
from tfdistedu.links.fast import Program, Text, compile_piece, text_of
from tfdistedu.links.peers import PeerFailed, Peers
from tfdistedu.links.pieces import cut

_MOST_PREPARED = 1024


class Todo(NamedTuple):
    """What a call does, whatever its values.

    Attributes:
        text: What is called.
        wide: The type in which it is added.
        combine: What a reduction does.
        mean: The divisor; `None` where nothing is divided.
        pieces: The elements of each piece, and its program.
    """

    text: Text
    wide: np.dtype
    combine: Any
    mean: Any
    pieces: tuple[tuple[slice, Program], ...]


class Desk:
    """Where calls of one rank are prepared, and made one after another.

    Args:
        peers: The control lines.
        link: A fast link.
        kind: Its name, for the choice of algorithms.
        prices: What links cost here, or `None`.

    """

    def __init__(self, peers: Peers, link: Any, kind: str, prices: Any):
        self.peers, self.link, self.kind, self.prices = peers, link, kind, prices
        self.n_calls = 0
        self.broken = ""
        self._one_at_a_time = threading.Lock()
        self._prepared: dict[Any, Todo] = {}

    def prepare(
        self, shape: tuple[int, ...], dtype: np.dtype, op: str, algorithm: Any = None, buffer: int | None = None
    ) -> Todo:
        """Check an all-reduce and work it out; kept for the next call that is like it.

        Args:
            shape: The array's shape.
            dtype: Its type.
            op: "sum", "mean", "min" or "max".
            algorithm: A name, a function or a schedule; `None` chooses by size.
            buffer: The number of the buffer that it works in.

        Returns:
            What to do.

        Raises:
            BadInput: There is no such reduction or algorithm.

        """
        key = (shape, dtype, op, algorithm, buffer)
        try:
            todo = self._prepared.get(key)
        except TypeError:
            raise BadInput(
                f"algorithm={algorithm!r}: give a name, a function of n_ranks that returns a Schedule, or one."
            ) from None
        if todo is None:
            as_arrays([np.empty(0, dtype)])
            wide = accumulator(dtype, op)
            size = int(np.prod(shape, dtype=np.int64))
            n_ranks = self.peers.n_ranks
            if algorithm is None:
                algorithm = choose(n_ranks, size * wide.itemsize, self.kind, self.prices)
            plan = plan_for(algorithm, n_ranks, "all_reduce")
            in_place = buffer is not None and wide == dtype
            where = f" in buffer {buffer}" if in_place else ""
            text = text_of(f"all_reduce({op}, {dtype}{list(shape)}, {plan.schedule.name}){where}")
            mean = wide.type(n_ranks) if op == "mean" else None
            todo = Todo(text, wide, combiner(wide, op), mean, self.pieces(plan, size, wide.itemsize, in_place))
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.clear()
            self._prepared[key] = todo
        return todo

    def pieces(self, plan: Plan, size: int, itemsize: int, in_place: bool = False) -> tuple[tuple[slice, Program], ...]:
        """Cut a message and work out each piece.

        Args:
            plan: The plan.
            size: Number of elements.
            itemsize: Bytes of one.
            in_place: Whether the caller's array is slot 0.

        Returns:
            The elements of each piece, and its program.

        """
        return tuple(
            (slice(start, start + bounds[-1]), compile_piece(plan, self.peers.rank, bounds, in_place))
            for start, bounds in cut(size, itemsize, plan.schedule.n_chunks)
        )

    def call(self, text: Text, buffers: list[np.ndarray] | None = None) -> Call:
        """Make a call: `with desk.call(text): ...`.

        Args:
            text: What is called.
            buffers: Each rank's buffer, when it works in them.

        Returns:
            A context.

        """
        return Call(self, text, buffers)

    def let_go(self) -> None:
        """Be of no use any more: this process is a forked child."""
        self.broken = "this process was forked; the rank is its parent"
        self._one_at_a_time = threading.Lock()  # another thread may have held the old one, and is not here

    def tell(self, why: str) -> None:
        """Tell all that this rank gives up; it raises its own error.

        Args:
            why: What is wrong.

        """
        with contextlib.suppress(TfdisteduError):
            self.peers.give_up(PeerFailed, why)


class Call:
    """One call: alone, numbered, and the end of the communicator if it fails."""

    __slots__ = ("buffers", "desk", "text")

    def __init__(self, desk: Desk, text: Text, buffers: list[np.ndarray] | None):
        self.desk, self.text, self.buffers = desk, text, buffers

    def __enter__(self) -> None:
        desk = self.desk
        desk._one_at_a_time.acquire()
        if desk.broken:
            desk._one_at_a_time.release()
            raise TfdisteduError(
                f"rank {desk.peers.rank}: this communicator is of no use any more ({desk.broken}). Join anew."
            )
        desk.n_calls += 1
        if desk.n_calls % 256 == 0:
            desk.peers.drain()
        desk.peers.call = (desk.n_calls, self.text.words)
        desk.link.begin(self.text, self.buffers)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        desk = self.desk
        if error is not None:
            desk.broken = f"{kind.__name__} in call {desk.n_calls}"
            if not isinstance(error, TfdisteduError) or isinstance(error, BadInput):
                desk.tell(f"rank {desk.peers.rank} failed with {kind.__name__}: {error}")
        desk._one_at_a_time.release()


def own_array(array: Any, rank: int) -> np.ndarray:
    """Return what a rank gives as an array, or say what is wrong with it.

    Args:
        array: Anything that `np.asarray` takes.
        rank: This rank, for the message.

    Returns:
        The array; not copied if it is one already.

    Raises:
        BadInput: It cannot be sent.

    """
    try:
        return as_arrays([array])[0]
    except BadInput as error:  # which counts the arrays that it is given, and this is the only one
        raise BadInput(str(error).replace("rank 0", f"rank {rank}", 1)) from None


def own_output(out: Any, given: np.ndarray) -> np.ndarray:
    """Return the array for a result, or say what is wrong with it.

    Args:
        out: What the caller gave.
        given: The input, whose shape and type it must have.

    Returns:
        `out`.

    Raises:
        BadInput: It does not fit.

    """
    try:
        return as_outputs([out], [given.shape], given.dtype)[0]
    except BadInput as error:
        raise BadInput(str(error).replace("out[0]", "out", 1)) from None


def unharmed(given: np.ndarray, result: np.ndarray) -> np.ndarray:
    """Return an input on which no part of a result lands while it is still to be added.

    Args:
        given: The input.
        result: Where the result goes.

    Returns:
        The input, or a copy if the two overlap. Element on element is no harm: each is read before it is written.

    """
    same_place = given.ctypes.data == result.ctypes.data and given.strides == result.strides
    return given if same_place or not np.may_share_memory(given, result) else given.copy()


@functools.lru_cache(maxsize=256)
def plan_for(algorithm: Any, n_ranks: int, goal: str) -> Plan:
    """Prove a schedule, once, and plan it.

    Args:
        algorithm: A name, a function from `n_ranks` to a schedule, or a schedule.
        n_ranks: Number of ranks.
        goal: What it is for.

    Returns:
        Its plan.

    Raises:
        BadInput: There is no such algorithm, or it does not reach the goal.

    """
    schedule = schedule_for(algorithm, n_ranks, goal)
    verify(schedule, goal)
    return make_plan(schedule)


@functools.lru_cache(maxsize=64)
def broadcast_plan(n_ranks: int, root: int) -> Plan:
    """Prove and plan the broadcast of a root.

    Args:
        n_ranks: Number of ranks.
        root: The rank whose array all get.

    Returns:
        Its plan.

    """
    schedule = tree_broadcast(n_ranks, root)
    verify(schedule, "broadcast", root)
    return make_plan(schedule)
