"""Every link gives the plain executor's bits: for drawn schedules, sizes, types and operations, not only for the named.

With named algorithms and float32 sums alone, a wrong second slot, a window that is written again too early and a mean
that is divided twice would all have passed.
"""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.test_collectives_plans import random_schedule
from tests.ranks import run_threads, values
from tfdistedu.collectives import ALGORITHMS, all_reduce, make_plan
from tfdistedu.collectives.algorithms import schedule_for
from tfdistedu.collectives.arithmetic import accumulator, combiner, finish
from tfdistedu.collectives.family import all_gather, reduce_scatter
from tfdistedu.links import communicator as communicator_module
from tfdistedu.links import fast, pieces
from tfdistedu.links.calls import plan_for
from tfdistedu.links.fast import compile_piece, run_piece, text_of
from tfdistedu.links.pieces import cut, reference

LINKS = ("shared_memory", "tcp")
NAMES = sorted(name for name, function in ALGORITHMS.items() if function.goal == "all_reduce")
SMALL_PIECES = 1 << 10  # bytes: a few hundred elements are several pieces


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Cut at 1 KiB, so that small messages have many pieces and windows are written again and again."""
    monkeypatch.setattr(pieces, "PIECE_BYTES", SMALL_PIECES)
    cut.cache_clear()
    yield
    cut.cache_clear()


def drawn(seed: int, n_ranks: int, size: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return [rng.integers(0, 25, size).astype(dtype) for _ in range(n_ranks)]
    return [(rng.normal(size=size) * 10 ** rng.uniform(-3, 3, size)).astype(dtype) for _ in range(n_ranks)]


def oracle(schedule, arrays, op):
    """Widen, run the plain executor as links cut, narrow."""
    dtype = arrays[0].dtype
    wide = accumulator(dtype, op)
    buffers = [array.astype(wide) for array in arrays]
    reference(schedule, buffers, combiner(wide, op))
    return [finish(buffer, dtype, op, len(arrays)) for buffer in buffers]


@settings(max_examples=60)
@given(
    st.sampled_from(LINKS),
    st.integers(1, 5),
    st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 100, 255, 256, 257, 700, 1021]),
    st.sampled_from(["float32", "float64", "float16", "int32", "int64", "uint8"]),
    st.sampled_from(["sum", "mean", "min", "max"]),
    st.sampled_from(NAMES),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_all_reduce_has_the_bits_of_the_plain_executor(link, n_ranks, size, dtype, op, name, in_place, seed):
    if np.dtype(dtype).kind in "iu" and op == "mean":
        op = "sum"
    arrays = drawn(seed, n_ranks, size, dtype)
    given_ = [array.copy() for array in arrays]
    expected = oracle(schedule_for(name, n_ranks), arrays, op)

    def body(comm):
        mine = given_[comm.rank]
        twice = [comm.all_reduce(mine, op, name) for _ in range(2)]  # the second finds windows that were used
        assert twice[0].tobytes() == twice[1].tobytes()
        assert mine.tobytes() == arrays[comm.rank].tobytes()
        return comm.all_reduce(mine, op, name, out=mine) if in_place else twice[0]

    for rank, result in enumerate(values(run_threads(n_ranks, body, link=link))):
        assert result.tobytes() == expected[rank].tobytes(), (rank, result, expected[rank])


@settings(max_examples=40)
@given(st.sampled_from(LINKS), st.integers(0, 2**32), st.sampled_from([1, 5, 300, 777]))
def test_any_schedule_has_the_oracles_bits_also_if_it_is_no_all_reduce(link, seed, size):
    """A drawn schedule overwrites, sends again and reduces in orders that no named one has."""
    choose = random.Random(seed)
    schedule = random_schedule(choose)
    plan, n_ranks = make_plan(schedule), schedule.n_ranks
    arrays = drawn(seed, n_ranks, size, "float32")
    expected = [array.copy() for array in arrays]
    for _ in range(3):
        reference(schedule, expected)
    text = text_of("drawn")

    def body(comm):
        x = arrays[comm.rank].copy()
        for _ in range(3):
            out = np.full_like(x, np.nan)
            with comm._desk.call(text):
                for start, bounds in cut(size, 4, schedule.n_chunks):
                    here = slice(start, start + bounds[-1])
                    run_piece(comm._link, compile_piece(plan, comm.rank, bounds, False), x[here], out[here], np.add)
                comm._link.end(wait=False)
            x = out
        comm.barrier()
        return x

    for rank, result in enumerate(values(run_threads(n_ranks, body, link=link))):
        assert result.tobytes() == expected[rank].tobytes(), rank


@settings(max_examples=40)
@given(
    st.sampled_from(LINKS),
    st.integers(2, 4),
    st.sampled_from([1, 7, 256, 1000]),
    st.sampled_from(NAMES),
    st.sampled_from(["sum", "mean", "max"]),
    st.integers(0, 2**32),
)
def test_a_buffer_is_reduced_where_it_lies_and_may_be_written_at_once(link, n_ranks, size, name, op, seed):
    """A rank that returns early and writes its buffer must not change what a slower one still reads."""
    rounds = [drawn(seed + k, n_ranks, size, "float32") for k in range(4)]
    expected = [oracle(schedule_for(name, n_ranks), arrays, op) for arrays in rounds]

    def body(comm):
        buffer = comm.buffer(size)
        results = []
        for arrays in rounds:
            buffer[:] = arrays[comm.rank]
            assert comm.all_reduce(buffer, op, name, out=buffer) is buffer
            results.append(buffer.tobytes())
            buffer[:] = np.nan  # at once, whoever is not done yet
        return results

    for rank, results in enumerate(values(run_threads(n_ranks, body, link=link))):
        assert results == [each[rank].tobytes() for each in expected]


@settings(max_examples=40)
@given(
    st.sampled_from(LINKS), st.integers(2, 4), st.sampled_from(NAMES), st.integers(-400, 400),
    st.sampled_from([1, -1, 2]), st.integers(0, 2**32),
)  # fmt: skip
def test_a_result_that_overlaps_the_input_anywhere_does_not_harm_it(link, n_ranks, name, shift, step, seed):
    """With `out is x` alone this would pass where a piece's result lands on what the next one has yet to add."""
    memory = drawn(seed, n_ranks, 4000, "float32")
    expected = oracle(schedule_for(name, n_ranks), [each[1000:2000].copy() for each in memory], "sum")

    def body(comm):
        base = memory[comm.rank]
        start = 1500 + shift
        out = base[start : start + 1000 * step : step] if step > 0 else base[start : start - 1000 : step]
        return comm.all_reduce(base[1000:2000], algorithm=name, out=out)

    for rank, result in enumerate(values(run_threads(n_ranks, body, link=link))):
        assert result.tobytes() == expected[rank].tobytes(), rank


@pytest.mark.parametrize("link", LINKS)
def test_a_buffer_is_not_written_while_a_slow_rank_still_reads_it(link):
    """The drawn cases hit this race now and then; here one rank is slow on purpose, between look and addition."""
    arrays = drawn(5, 2, 40, "float32")
    expected = oracle(schedule_for("recursive_doubling", 2), arrays, "sum")

    def body(comm):
        buffer = comm.buffer(40)
        buffer[:] = arrays[comm.rank]
        take = comm._link.take

        def slow_take(*arguments):
            view = take(*arguments)
            time.sleep(0.2)
            return view

        if comm.rank == 1:
            comm._link.take = slow_take
        comm.all_reduce(buffer, algorithm="recursive_doubling", out=buffer)
        result = buffer.tobytes()
        buffer[:] = np.nan
        comm.barrier()
        return result

    assert values(run_threads(2, body, link=link)) == [each.tobytes() for each in expected]


@settings(max_examples=15)
@given(
    st.sampled_from(LINKS), st.lists(st.integers(0, 300), min_size=1, max_size=4), st.integers(0, 4),
    st.sampled_from(["float32", "int64", "uint8"]), st.integers(0, 3), st.integers(0, 2**32),
)  # fmt: skip
def test_the_other_collectives_are_those_of_the_family(link, lengths, size, dtype, root, seed):
    n_ranks = len(lengths)
    ragged = [drawn(seed + r, 1, length * 2, dtype)[0].reshape(length, 2) for r, length in enumerate(lengths)]
    arrays = drawn(seed, n_ranks, 171 * size, dtype)
    root %= n_ranks

    def body(comm):
        return (
            comm.all_gather(ragged[comm.rank]),
            comm.reduce_scatter(arrays[comm.rank]),
            comm.broadcast(arrays[comm.rank], root),
        )

    results = values(run_threads(n_ranks, body, link=link))
    for rank, (gathered, part, copy) in enumerate(results):
        assert gathered.tobytes() == all_gather(ragged)[rank].tobytes()
        assert gathered.shape == (sum(lengths), 2)
        assert part.tobytes() == reduce_scatter(arrays)[rank].tobytes()
        assert copy.tobytes() == arrays[root].tobytes()


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("weak_order", [False, True])
def test_barriers_for_weak_memory_order_change_no_bit(link, weak_order):
    arrays = drawn(1, 3, 2000, "float32")
    expected = oracle(schedule_for("recursive_doubling", 3), arrays, "sum")
    results = values(
        run_threads(3, lambda c: c.all_reduce(arrays[c.rank], algorithm="recursive_doubling"), link=link,
                    weak_order=weak_order)
    )  # fmt: skip
    assert [each.tobytes() for each in results] == [each.tobytes() for each in expected]


def test_pieces_as_long_as_they_are_in_use_give_the_oracles_bits(monkeypatch):
    """All other tests here cut at 1 KiB; here a message is cut where it is cut in use."""
    monkeypatch.setattr(pieces, "PIECE_BYTES", communicator_module.PIECE_BYTES)
    cut.cache_clear()
    size = 3 * communicator_module.PIECE_BYTES // 4 + 12345
    arrays = drawn(2, 2, size, "float32")
    assert len(cut(size, 4, 2)) == 4
    expected = oracle(schedule_for("direct", 2), arrays, "mean")
    for link in LINKS:
        results = values(run_threads(2, lambda c: c.all_reduce(arrays[c.rank], "mean"), link=link))
        assert [each.tobytes() for each in results] == [each.tobytes() for each in expected]


def test_the_fast_executor_is_near_the_taught_one_too():
    """Its cut is another, so the last bits are; more than they would mean that a chunk is lost or added twice."""
    arrays = drawn(3, 4, 1000, "float64")
    taught = all_reduce(arrays, "ring")[0]
    for result in values(run_threads(4, lambda c: c.all_reduce(arrays[c.rank], algorithm="ring"))):
        np.testing.assert_allclose(result, taught, rtol=1e-9)  # 4 additions of numbers over six decades


def test_what_is_never_sent_before_it_arrives_is_not_copied():
    program = compile_piece(plan_for("direct", 2, "all_reduce"), 0, (0, 10, 20), False)
    assert program.loads == (slice(10, 20),)  # chunk 0 is added straight from the input
    assert program.stores == ((slice(0, 10), 0),)  # chunk 1 lands straight in the output
    assert [land.own for take in program.rounds[0].takes for land in take.lands] == [fast.X]
