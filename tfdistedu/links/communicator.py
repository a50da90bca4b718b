"""How does a program add up arrays over processes? It joins a communicator, and calls what all the others call.

    with join(rank, n_ranks, address, token) as comm:           each rank, in its own process
        total = comm.all_reduce(gradient, op="mean")            the same call, in the same order, on all

What a call means is said by `tfdistedu.collectives`: the schedule, the types, the rounding. Here it is cut into pieces
and run on a link; the result has the bits of the plain executor (`tfdistedu.links.pieces.reference`).

Rules that hold: ranks that call different things get an error on all sides that says who called what. Every wait has a
deadline. A rank whose process ends is an error on the others within a second. After an error a communicator is of no
use: join anew.

Costs: see `tfdistedu bench links`. Leaves out: calls that overlap; a lock lets one call in at a time.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from tfdistedu.collectives.arithmetic import accumulator, combiner, finish
from tfdistedu.collectives.plan import Plan
from tfdistedu.collectives.schedule import chunk_bounds
from tfdistedu.links.calls import Desk, Todo, broadcast_plan, own_array, own_output, plan_for, unharmed
from tfdistedu.links.fast import compile_piece, run_piece, text_of
from tfdistedu.links.forked import remember
from tfdistedu.links.peers import Peers
from tfdistedu.links.pieces import PIECE_BYTES
from tfdistedu.links.shared_memory import SharedMemoryLink
from tfdistedu.links.tcp import TcpLink


class Communicator:
    """What one rank calls. Made by `join`.

    Attributes `rank`, `n_ranks`, `link` and `deadline` are what was given there.
    """

    def __init__(self, mesh: Any, link: str, deadline: float, weak_order: bool | None = None):
        self.rank, self.n_ranks, self.link, self.deadline = mesh.rank, mesh.n_ranks, link, deadline
        self._mesh, self._peers = mesh, Peers(mesh)
        self._link: Any = (
            SharedMemoryLink(mesh, self._peers, deadline, weak_order)
            if link == "shared_memory"
            else TcpLink(mesh, self._peers, deadline)
        )
        self._desk = Desk(self._peers, self._link, link, mesh.note)
        self._buffers: dict[int, tuple[int, list[np.ndarray]]] = {}  # by address
        self._n_buffers = 0
        remember(self)

    def all_reduce(
        self, array: Any, op: str = "sum", algorithm: Any = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Reduce the ranks' arrays; all get the result, with the same bits.

        Args:
            array: This rank's array; one shape and type on all ranks. An array from `buffer` that is `out` too is
                reduced where it lies, without a copy.
            op: "sum", "mean", "min" or "max".
            algorithm: A name, a function from `n_ranks` to a schedule, or a schedule; `None` chooses by size.
            out: Where the result goes; may be the array itself. `None` makes a new one.

        Returns:
            `out`, or a new array.

        Raises:
            BadInput: The array, `op` or `out` cannot be used; nothing was sent.
            Mismatch: Ranks call different things.
            PeerGone: A rank ended or left.
            DeadlineExceeded: A rank did not come.

        """
        given = array if type(array) is np.ndarray else own_array(array, self.rank)
        result = np.empty(given.shape, given.dtype) if out is None else out
        if out is not None and result is not given:
            result = own_output(result, given)
            given = unharmed(given, result)
        lent = self._lent(given, out) if self._buffers else None
        todo = self._desk.prepare(given.shape, given.dtype, op, algorithm, None if lent is None else lent[0])
        buffers = None if lent is None else lent[1]
        with self._desk.call(todo.text, buffers), np.errstate(over="ignore", invalid="ignore"):
            if todo.wide == given.dtype and result.flags.c_contiguous:
                x = given if given.flags.c_contiguous else np.ascontiguousarray(given)
                self._run(todo, x.reshape(-1), result.reshape(-1), buffers)
            else:
                # One widening, one rounding: what is added in between has the wide type.
                x = given.astype(todo.wide).reshape(-1)
                self._run(todo._replace(mean=None), x, x)
                result[...] = finish(x, given.dtype, op, self.n_ranks).reshape(given.shape)
        return result

    def reduce_scatter(self, array: Any, op: str = "sum", algorithm: Any = "ring_reduce_scatter") -> np.ndarray:
        """Reduce the ranks' arrays; each gets its part of the result.

        Args:
            array: This rank's array; one shape and type on all ranks.
            op: "sum", "mean", "min" or "max".
            algorithm: A reduce-scatter: a name, a function from `n_ranks` to a schedule, or a schedule.

        Returns:
            A new one-dimensional array: part `rank` of the flat result, as `chunk_bounds` cuts it.

        Raises:
            BadInput: The array or `op` cannot be used.
            Mismatch: Ranks call different things.
            PeerGone: A rank ended or left.
            DeadlineExceeded: A rank did not come.

        """
        given = own_array(array, self.rank)
        wide = accumulator(given.dtype, op)
        plan = plan_for(algorithm, self.n_ranks, "reduce_scatter")
        flat, bounds = given.astype(wide).reshape(-1), chunk_bounds(given.size, self.n_ranks)
        mine = slice(bounds[self.rank], bounds[self.rank + 1])
        with (
            self._desk.call(text_of(f"reduce_scatter({op}, {given.dtype}{list(given.shape)}, {plan.schedule.name})")),
            np.errstate(over="ignore", invalid="ignore"),
        ):
            self._run_by_parts(plan, flat, bounds, combiner(wide, op))
            return finish(flat[mine], given.dtype, op, self.n_ranks)

    def all_gather(self, array: Any, algorithm: Any = "ring_all_gather") -> np.ndarray:
        """Give every rank all arrays, one behind the other along the first axis.

        Args:
            array: This rank's array, of one type on all ranks; lengths along the first axis may differ.
            algorithm: An all-gather: a name, a function from `n_ranks` to a schedule, or a schedule.

        Returns:
            What `np.concatenate` gives.

        Raises:
            BadInput: The array cannot be used.
            Mismatch: Ranks call different things, or their arrays do not fit each other.
            PeerGone: A rank ended or left.
            DeadlineExceeded: A rank did not come.

        """
        given = np.atleast_1d(own_array(array, self.rank))
        plan = plan_for(algorithm, self.n_ranks, "all_gather")
        rest = list(given.shape[1:])
        lengths = np.zeros(self.n_ranks, np.int64)
        lengths[self.rank] = len(given)
        with self._desk.call(text_of(f"all_gather({given.dtype}[..., {rest}], {plan.schedule.name}): lengths")):
            self._run(self._desk.prepare(lengths.shape, lengths.dtype, "sum"), lengths, lengths)
        whole = np.empty((int(lengths.sum()), *rest), given.dtype)
        ends = [0, *(np.cumsum(lengths) * int(np.prod(rest, dtype=np.int64))).tolist()]
        flat = whole.reshape(-1)
        flat[ends[self.rank] : ends[self.rank + 1]] = given.reshape(-1)
        with self._desk.call(text_of(f"all_gather({given.dtype}, {lengths.tolist()}, {plan.schedule.name})")):
            self._run_by_parts(plan, flat, ends, np.add)
        return whole

    def broadcast(self, array: Any, root: int = 0, out: np.ndarray | None = None) -> np.ndarray:
        """Give every rank a copy of the root's array.

        Args:
            array: This rank's array; one shape and type on all ranks.
            root: The rank whose array all get.
            out: Where it goes; may be the array itself. `None` makes a new one.

        Returns:
            `out`, or a new array.

        Raises:
            BadInput: The array, the root or `out` cannot be used.
            Mismatch: Ranks call different things.
            PeerGone: A rank ended or left.
            DeadlineExceeded: A rank did not come.

        """
        given = own_array(array, self.rank)
        result = np.empty(given.shape, given.dtype) if out is None else own_output(out, given)
        plan = broadcast_plan(self.n_ranks, root)
        work = np.ascontiguousarray(given).reshape(-1).view(np.uint8).copy()  # what is only moved needs no type
        text = text_of(f"broadcast({given.dtype}{list(given.shape)}, root {root})")
        with self._desk.call(text):
            pieces = self._desk.pieces(plan, work.size, 1)
            self._run(Todo(text, work.dtype, np.add, None, pieces), work, work)
        result[...] = work.view(given.dtype).reshape(given.shape)
        self.barrier()  # a root that only sends would not hear of it if others call something else
        return result

    def barrier(self) -> None:
        """Return when all ranks have called it.

        Raises:
            Mismatch: Ranks call different things.
            PeerGone: A rank ended or left.
            DeadlineExceeded: A rank did not come.

        """
        self._meet("barrier()")

    def buffer(self, shape: int | Sequence[int], dtype: Any = np.float32) -> np.ndarray:
        """Make an array that lies where the others can read it. All ranks call it, with one shape and type.

        Args:
            shape: Its shape.
            dtype: Its type.

        Returns:
            Zeros. `all_reduce(buffer, out=buffer)` on all ranks reduces it without a copy. It is freed with the array.

        Raises:
            Mismatch: Ranks call different things.
            PeerGone: A rank ended or left.

        """
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._meet(f"buffer({dtype}{list(shape)})")
        buffers = [each.view(dtype) for each in self._link.share(n_bytes)]
        result, place = buffers[self.rank].reshape(shape), buffers[self.rank].ctypes.data
        self._n_buffers += 1
        self._buffers[place] = (self._n_buffers, buffers)
        weakref.finalize(result, self._buffers.pop, place, None)
        return result

    def close(self) -> None:
        """Leave. Others that still wait for this rank get an error."""
        if self._desk.broken != "closed":
            self._desk.broken = "closed"
            self._buffers.clear()
            self._peers.close()
            self._link.shut()
            self._mesh.close()

    def let_go(self) -> None:
        """Close this process's copies of the lines without a word: it is a forked child, and the rank is its parent."""
        self._desk.let_go()
        self._peers.let_go()
        self._link.shut()
        self._mesh.close()

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not self._desk.broken:
            # The others hear why, instead of waiting for a rank that does not come.
            self._desk.tell(f"rank {self.rank} left with {type(error).__name__}: {error}")
        self.close()

    def _lent(self, given: np.ndarray, out: Any) -> tuple[int, list[np.ndarray]] | None:
        """Return the buffers of all ranks, if the array is a whole one of this rank and is reduced in place."""
        number, buffers = self._buffers.get(given.ctypes.data, (0, None))
        if out is not given or buffers is None:
            return None
        mine = buffers[self.rank]
        return (number, buffers) if (mine.size, mine.dtype) == (given.size, given.dtype) else None

    def _meet(self, text: str) -> None:
        """Return when all have called this: nothing is added up but zeros."""
        todo = self._desk.prepare((self.n_ranks,), np.dtype(np.int64), "sum")
        nothing = np.zeros(self.n_ranks, np.int64)
        with self._desk.call(text_of(text)):
            self._run(todo, nothing, nothing)

    def _run(self, todo: Todo, x: np.ndarray, out: np.ndarray, lent: list[np.ndarray] | None = None) -> None:
        """Run a plan piece by piece."""
        mean, mine = todo.mean, None if lent is None else lent[self.rank]
        for here, program in todo.pieces:
            result = out[here]
            run_piece(self._link, program, x[here], result, todo.combine, here.start, mine)
            if mean is not None and lent is None:
                np.divide(result, mean, out=result)
        self._link.end(wait=lent is not None)
        if mean is not None and lent is not None:  # others may have read it until now
            np.divide(out, mean, out=out)

    def _run_by_parts(self, plan: Plan, flat: np.ndarray, bounds: Sequence[int], combine: Any) -> None:
        """Run a plan whose chunks are given: each piece has a part of each chunk. In place."""
        longest = max(b - a for a, b in itertools.pairwise(bounds))
        most = max(1, PIECE_BYTES // flat.itemsize // self.n_ranks)
        for first in range(0, max(longest, 1), most):
            parts = [slice(min(a + first, b), min(a + first + most, b)) for a, b in itertools.pairwise(bounds)]
            work = np.concatenate([flat[part] for part in parts])
            ends = [0, *np.cumsum([part.stop - part.start for part in parts]).tolist()]
            run_piece(self._link, compile_piece(plan, self.rank, tuple(ends), False), work, work, combine)
            for part, (a, b) in zip(parts, itertools.pairwise(ends), strict=True):
                flat[part] = work[a:b]
        self._link.end(wait=False)
