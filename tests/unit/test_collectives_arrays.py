"""Arrays of every shape go in, stay as they were, and come out right; those that do not fit are named by their rank."""

from __future__ import annotations

import numpy as np
import pytest

from tfdistedu.collectives import (
    ALGORITHMS,
    Schedule,
    all_gather,
    all_reduce,
    broadcast,
    chunk_bounds,
    execute,
    reduce,
    reduce_scatter,
    ring,
)
from tfdistedu.collectives.trace import Record, as_schedule, bytes_per_link, trace
from tfdistedu.errors import BadInput

ALL_REDUCE = sorted(name for name, function in ALGORITHMS.items() if function.goal == "all_reduce")


def named(goal):
    return sorted(name for name, function in ALGORITHMS.items() if function.goal == goal)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0), (2, 3), (2, 1, 5), (1, 1, 1)])
@pytest.mark.parametrize("name", ALL_REDUCE)
def test_every_shape_comes_out_as_it_went_in(shape, name):
    arrays = [np.full(shape, rank + 1.0) for rank in range(3)]
    for result in all_reduce(arrays, algorithm=name):
        assert type(result) is np.ndarray
        assert result.shape == shape
        assert np.all(result == 6.0)


def strided(rank):
    return np.arange(24.0).reshape(4, 6)[::2, ::-3] * (rank + 1)


def views(rank):
    base = np.arange(24.0).reshape(4, 6) * (rank + 1)
    frozen = base.copy()
    frozen.flags.writeable = False
    return [base[::2, ::-3], base.T, np.asfortranarray(base), frozen, np.broadcast_to(base[0], (3, 6)), base[1:1]]


@pytest.mark.parametrize("which", range(6))
def test_strided_transposed_read_only_and_broadcast_inputs_are_fine_and_unchanged(which):
    arrays = [views(rank)[which] for rank in range(4)]
    before = [array.copy() for array in arrays]
    for result in all_reduce(arrays):
        np.testing.assert_array_equal(result, np.sum(before, axis=0))
        result[...] = -1  # writable, and nobody's but this rank's
    np.testing.assert_array_equal(arrays, before)


def test_ranks_may_differ_in_memory_order():
    a = np.arange(6.0).reshape(2, 3)
    for result in all_reduce([a, np.asfortranarray(a)]):
        np.testing.assert_array_equal(result, 2 * a)


def test_results_share_no_memory_with_inputs_or_each_other():
    for n_ranks in (1, 2, 3):
        arrays = [np.ones(5) for _ in range(n_ranks)]
        for results in (all_reduce(arrays), broadcast(arrays), all_gather(arrays), reduce_scatter(arrays)):
            for rank, result in enumerate(results):
                others = [*arrays, *results[:rank]]
                assert not any(np.shares_memory(result, other) for other in others)


def test_lists_and_numbers_are_arrays_too():
    assert [result.tolist() for result in all_reduce([[1, 2], [3, 4]])] == [[4, 6], [4, 6]]
    assert all_reduce([1.5, 2.0])[0].shape == ()
    assert all_reduce(np.ones((3, 2)))[1].tolist() == [3.0, 3.0]


def test_out_is_filled_and_returned_and_may_be_the_inputs():
    arrays = [np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])]
    out = [np.zeros(3), np.zeros(3)]
    results = all_reduce(arrays, out=out)
    assert all(result is given for result, given in zip(results, out, strict=True))
    assert [result.tolist() for result in out] == [[11, 22, 33]] * 2
    assert arrays[0].tolist() == [1, 2, 3]
    all_reduce(arrays, out=arrays)
    assert [array.tolist() for array in arrays] == [[11, 22, 33]] * 2


def test_out_may_be_the_inputs_in_another_order_or_overlap_them():
    # Written too early, a result would be read as an input.
    memory = np.arange(8.0)
    arrays = [memory[0:4], memory[4:8]]
    all_reduce(arrays, out=[arrays[1], arrays[0]])
    assert memory.tolist() == [4, 6, 8, 10] * 2
    memory = np.arange(9.0)
    all_reduce([memory[0:4], memory[4:8]], out=[memory[1:5], memory[5:9]])
    assert memory.tolist() == [0, 4, 6, 8, 10, 4, 6, 8, 10]


def test_out_may_be_strided():
    out = np.zeros((3, 2))
    all_reduce([np.arange(3.0), np.arange(3.0)], out=[out[:, 0], out[:, 1]])
    assert out.tolist() == [[0, 0], [2, 2], [4, 4]]


def frozen():
    array = np.zeros(2)
    array.flags.writeable = False
    return array


SHARED = np.zeros(4)


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ([np.zeros(2)], "out has 1 arrays, and there are 2 ranks"),
        ([np.zeros(2), np.zeros(3)], r"out\[1\] has shape \(3,\)"),
        ([np.zeros((1, 2)), np.zeros(2)], r"out\[0\] has shape \(1, 2\)"),
        ([np.zeros(2), np.zeros(2, np.float32)], r"out\[1\] has type float32"),
        ([np.zeros(2), frozen()], r"out\[1\] is read-only"),
        ([np.zeros(2), [0.0, 0.0]], r"out\[1\] is a list"),
        ([SHARED[:2], SHARED[1:3]], r"out\[0\] and out\[1\] share memory"),
    ],
)
def test_an_out_that_does_not_fit_is_refused_before_anything_is_written(out, says):
    with pytest.raises(BadInput, match=says):
        all_reduce([np.ones(2), np.ones(2)], out=out)
    assert not np.any(out[0])


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ([], "there is no rank"),
        (5, "give a list with one array for each rank"),
        ([[1.0], [1.0, 2.0]], r"rank 1 has shape \(2,\), and rank 0 has \(1,\)"),
        ([np.ones(3), np.ones(3), np.ones((3, 1))], r"rank 2 has shape \(3, 1\)"),
        ([np.ones(2), np.ones(2), np.ones(2, np.float32)], "rank 2 has type float32, and rank 0 has float64"),
        ([np.ones(2), np.ones(2, ">f8")], "rank 1 has type >f8"),
        ([[1, 2], [1, None]], "rank 1 has an array of type object"),
        ([[[1], [1, 2]], [1]], "rank 0 has no array"),
        ([np.ma.masked_array([1.0], [True])], "rank 0 has a masked array"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_with_the_rank(arrays, says):
    with pytest.raises(BadInput, match=says):
        all_reduce(arrays)


@pytest.mark.parametrize("name", named("reduce_scatter"))
def test_reduce_scatter_gives_rank_r_chunk_r(name):
    for n_ranks in (1, 2, 3, 5):
        for size in (0, 1, n_ranks - 1, n_ranks, 7):
            arrays = [np.arange(size) * 10**rank for rank in range(n_ranks)]
            parts = reduce_scatter(arrays, algorithm=name)
            bounds = chunk_bounds(size, n_ranks)
            for rank, part in enumerate(parts):
                np.testing.assert_array_equal(part, np.sum(arrays, axis=0)[bounds[rank] : bounds[rank + 1]])
            np.testing.assert_array_equal(np.concatenate(parts), np.sum(arrays, axis=0))
            out = [np.empty_like(part) for part in parts]
            assert reduce_scatter(arrays, algorithm=name, out=out)[0] is out[0]


@pytest.mark.parametrize("name", named("all_gather"))
def test_all_gather_is_concatenate_on_every_rank_for_uneven_lengths_too(name):
    # Uneven counts are the usual case for sparse gradients; equal ones hide bounds that assume them.
    arrays = [np.arange(length * 2.0).reshape(length, 2) + 100 * length for length in (3, 0, 1, 5)]
    for result in all_gather(arrays, algorithm=name):
        np.testing.assert_array_equal(result, np.concatenate(arrays))
    assert all_gather([7, 8], algorithm=name)[1].tolist() == [7, 8]
    with pytest.raises(BadInput, match="rank 1 has shape"):
        all_gather([np.zeros((1, 2)), np.zeros((1, 3))])


@pytest.mark.parametrize("name", named("broadcast"))
def test_broadcast_gives_all_what_the_root_has(name):
    for n_ranks in (1, 2, 3, 6):
        for root in range(n_ranks):
            arrays = [np.full((2, 3), rank + 1) for rank in range(n_ranks)]
            for result in broadcast(arrays, root=root, algorithm=name):
                np.testing.assert_array_equal(result, arrays[root])


@pytest.mark.parametrize("name", named("reduce"))
def test_reduce_gives_the_root_the_sum(name):
    for n_ranks in (1, 2, 3, 6):
        for root in range(n_ranks):
            arrays = [np.arange(4.0).reshape(2, 2) * 10**rank for rank in range(n_ranks)]
            np.testing.assert_array_equal(reduce(arrays, root=root, algorithm=name), np.sum(arrays, axis=0))
    with pytest.raises(BadInput, match="root 3 is no rank"):
        reduce([[1.0]] * 3, root=3, algorithm=name)


def test_the_rounding_of_a_mean_is_the_same_in_the_whole_family():
    arrays = [np.float32([0.1, 0.2, 0.7]), np.float32([0.3, 0.9, 0.1]), np.float32([0.5, 0.5, 0.5])]
    whole = all_reduce(arrays, op="mean")[0]
    assert np.concatenate(reduce_scatter(arrays, op="mean")).tobytes() == whole.tobytes()


def test_a_schedule_is_executed_exactly_as_it_is_written():
    # All transfers of a round read what stood at its start: executed one by one, rank 2 would get 1 + 2 + 3.
    buffers = [np.array([1.0]), np.array([2.0]), np.array([3.0])]
    execute(Schedule("shift", 3, 1, [[(0, 1, 0, True), (1, 2, 0, True)]]), buffers)
    assert [buffer.tolist() for buffer in buffers] == [[1.0], [3.0], [5.0]]


def test_reductions_into_one_chunk_happen_in_the_listed_order():
    # 1e30 - 1e30 + 1 is 1, and 1e30 + 1 - 1e30 is 0.
    for order, expected in (((1, 2), 0.0), ((2, 1), 1.0)):
        buffers = [np.array([1.0e30]), np.array([1.0]), np.array([-1.0e30])]
        execute(Schedule("listed", 3, 1, [[(src, 0, 0, True) for src in order]]), buffers)
        assert buffers[0][0] == expected


def test_in_an_exchange_the_lower_ranks_value_is_left_on_both_sides():
    # A combination that shows its order; with numbers, only the payload of a NaN would.
    buffers = [np.array(["0"], object), np.array(["1"], object)]
    show = np.frompyfunc(lambda left, right: f"({left}{right})", 2, 1)
    execute(Schedule("swap", 2, 1, [[(0, 1, 0, True), (1, 0, 0, True)]]), buffers, combine=show)
    assert [buffer[0] for buffer in buffers] == ["(01)", "(01)"]
    execute(Schedule("one way", 2, 1, [[(0, 1, 0, True)]]), buffers, combine=show)
    assert buffers[1][0] == "((01)(01))"


def test_buffers_that_do_not_fit_the_schedule_are_refused():
    with pytest.raises(BadInput, match="ring needs 3 one-dimensional buffers"):
        execute(ring(3), [np.zeros(2)] * 2)
    with pytest.raises(BadInput, match="ring has 2 chunks, and there are 2 bounds"):
        execute(ring(2), [np.zeros(2)] * 2, bounds=[0, 2])
    with pytest.raises(BadInput, match="one length"):
        execute(ring(2), [np.zeros(2), np.zeros(3)])


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_a_run_leaves_the_records_that_the_schedule_alone_foretells(name):
    schedule = ALGORITHMS[name](5)
    seen = []
    execute(schedule, [np.zeros(13, np.float32) for _ in range(5)], trace=seen)
    assert seen == trace(schedule, size=13, itemsize=4)
    assert as_schedule(seen, 5, schedule.n_chunks).rounds == schedule.rounds


def test_records_that_name_no_chunk_make_no_schedule():
    with pytest.raises(BadInput, match="does not say which chunk"):
        as_schedule([Record(0, 0, 1, None, None, 8)], 2, 1)


def test_the_ring_sends_the_same_bytes_over_each_link_and_none_elsewhere():
    seen = []
    all_reduce([np.zeros(20, np.float32)] * 4, trace=seen)
    assert bytes_per_link(seen) == {(rank, (rank + 1) % 4): 2 * 3 * 20 for rank in range(4)}


def test_chunk_bounds_never_drop_an_element():
    for size in range(40):
        for n_chunks in range(1, 9):
            for multiple in (1, 4, 16):
                bounds = chunk_bounds(size, n_chunks, multiple)
                assert (bounds[0], bounds[-1], len(bounds)) == (0, size, n_chunks + 1)
                assert bounds == sorted(bounds)
                assert all(bound % multiple == 0 for bound in bounds[:-1] if bound < size)
                sizes = np.diff(bounds)
                assert multiple > 1 or sizes.max() - sizes.min() <= 1
    for wrong in ((-1, 2), (3, 0), (3, 2, 0)):
        with pytest.raises(BadInput, match="cannot cut"):
            chunk_bounds(*wrong)
