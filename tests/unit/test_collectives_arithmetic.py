"""The table of types in `tfdistedu.collectives.arithmetic`, cell by cell: what each adds in, and nothing is lost."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdistedu.collectives import ALGORITHMS, all_gather, all_reduce, broadcast, reduce, reduce_scatter
from tfdistedu.collectives.algorithms import schedule_for
from tfdistedu.collectives.arithmetic import combiner
from tfdistedu.errors import BadInput

ALL_REDUCE = sorted(name for name, function in ALGORITHMS.items() if function.goal == "all_reduce")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(t) for t in ("float16", "float32", "float64", "longdouble")] + [BFLOAT16]
INTEGERS = [np.dtype(t) for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")]


@pytest.fixture(autouse=True)
def no_warning():
    # Results that are inf or NaN are results; a warning for each rank and round would bury what matters.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def bits(array):
    """All bits but the payload of NaN, which addition does not promise to keep."""
    plain = np.array(array, copy=True)
    plain[np.isnan(plain)] = 0
    return np.isnan(array).tobytes() + plain.tobytes()


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
@pytest.mark.parametrize("op", ["sum", "min", "max"])
def test_every_number_type_is_reduced_into_its_own_type(dtype, op):
    # Small whole numbers are exact in every type, so the result has no tolerance.
    arrays = [np.array([1, 2, 3, 5], dtype) * dtype.type(rank + 1) for rank in range(3)]
    expected = {"sum": [6, 12, 18, 30], "min": [1, 2, 3, 5], "max": [3, 6, 9, 15]}[op]
    for result in all_reduce(arrays, op=op):
        assert result.dtype == dtype
        assert result.astype(np.float64).tolist() == expected


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_mean_of_floats_is_the_sum_divided_once(dtype):
    arrays = [np.array([1, 4], dtype), np.array([2, 8], dtype)]
    for result in all_reduce(arrays, op="mean"):
        assert result.dtype == dtype
        assert result.astype(np.float64).tolist() == [1.5, 6.0]


@pytest.mark.parametrize(("dtype", "largest"), [(np.dtype(np.float16), 60000.0), (BFLOAT16, 3.0e38)], ids=str)
def test_the_mean_of_16_bit_floats_divides_before_it_narrows(dtype, largest):
    # Divided after narrowing, the float16 mean of two large numbers would be inf. (bfloat16 has float32's range, so
    # a power of ten less.)
    largest = largest / 10 if dtype == BFLOAT16 else largest
    arrays = [np.array([largest], dtype)] * 2
    assert all_reduce(arrays, op="mean")[0].tobytes() == arrays[0].tobytes()


def test_a_float16_sum_that_is_too_large_becomes_inf_and_shows():
    assert all_reduce([np.float16([60000])] * 2)[0].tolist() == [np.inf]


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16], ids=str)
@pytest.mark.parametrize("name", ALL_REDUCE)
def test_16_bit_floats_are_added_in_float32_and_rounded_once(dtype, name):
    # 1 plus many halves of its last place: added in 16 bits, every single one is rounded away (or up).
    tiny = np.array([float(np.finfo(np.float16).eps) / 2 if dtype != BFLOAT16 else 2.0**-8], dtype)
    arrays = [np.array([1], dtype)] + [tiny] * 8
    expected = np.sum([array.astype(np.float64) for array in arrays], axis=0).astype(dtype)
    assert float(expected[0]) > 1 + 3 * float(tiny[0])
    assert all_reduce(arrays, algorithm=name)[3].tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_an_integer_sum_that_does_not_fit_is_refused_and_names_it(dtype):
    top = np.iinfo(dtype).max
    out = [np.zeros(2, dtype), np.zeros(2, dtype)]
    with pytest.raises(BadInput, match=f"a sum is {top + 1}, and {dtype.name} cannot hold it"):
        all_reduce([np.array([0, top], dtype), np.array([1, 1], dtype)], out=out)
    assert not np.any(out)  # nothing was written
    assert all_reduce([np.array([top - 1], dtype), np.array([1], dtype)])[1].tolist() == [top]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_a_negative_integer_sum_that_does_not_fit_is_refused(dtype):
    low = np.iinfo(dtype).min
    with pytest.raises(BadInput, match="cannot hold it"):
        all_reduce([np.array([low], dtype), np.array([-1], dtype)])


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_a_sum_that_fits_is_right_even_if_parts_of_it_do_not(name):
    # 100 + 100 alone is no int8; wrapping around and back would be luck, an error would depend on the algorithm.
    arrays = [np.int8([value]) for value in (100, 100, -100, -50)]
    assert [int(result[0]) for result in all_reduce(arrays, algorithm=name)] == [50] * 4


def test_integers_that_float32_cannot_hold_are_added_exactly():
    # 2**25 + 1 is no float32: an accumulation in float32 loses the 1.
    arrays = [np.int64([2**25 + 1 + rank, 2**61]) for rank in range(3)]
    assert all_reduce(arrays)[2].tolist() == [3 * 2**25 + 6, 3 * 2**61]
    arrays = [np.int32([2**25 + 1 + rank]) for rank in range(3)]
    assert all_reduce(arrays)[2].tolist() == [3 * 2**25 + 6]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_the_mean_of_integers_is_refused_with_the_way_out(dtype):
    with pytest.raises(BadInput, match="convert first"):
        all_reduce([np.array([1], dtype), np.array([2], dtype)], op="mean")


def test_bools_have_all_and_any_but_no_sum():
    arrays = [np.array([True, True, False]), np.array([True, False, False])]
    assert all_reduce(arrays, op="min")[0].tolist() == [True, False, False]
    assert all_reduce(arrays, op="max")[1].tolist() == [True, True, False]
    for op in ("sum", "mean"):
        with pytest.raises(BadInput, match="is a count, and no bool holds it"):
            all_reduce(arrays, op=op)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2, complex),
        np.array(["a", "b"]),
        np.array([b"a"]),
        np.array([object()]),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.array([1], "timedelta64[s]"),
        np.zeros(2, [("x", int)]),
        np.zeros(2, ml_dtypes.float8_e4m3fn),
    ],
    ids=lambda array: str(array.dtype),
)
def test_types_that_cannot_be_reduced_are_refused(array):
    for op in ("sum", "min"):
        with pytest.raises(BadInput, match="type"):
            all_reduce([array, array], op=op)


def test_an_unknown_reduction_is_answered_with_those_that_there_are():
    with pytest.raises(BadInput, match="no reduction 'avg'; there are sum, mean, min, max"):
        all_reduce([[1.0]], op="avg")


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.kind == "f"], ids=str)
@pytest.mark.parametrize("name", ALL_REDUCE)
def test_nan_and_infinities_arrive_at_all_ranks(dtype, name):
    values = [[np.nan, np.inf, np.inf, -np.inf, 1], [1, 1, -np.inf, -np.inf, 1], [1, 1, 1, 1, 1]]
    arrays = [np.array(value, dtype) for value in values]
    for op in ("sum", "mean"):
        for result in all_reduce(arrays, algorithm=name, op=op):
            np.testing.assert_array_equal(result[:4], np.array([np.nan, np.inf, np.nan, -np.inf], dtype))
    for result in all_reduce(arrays, algorithm=name, op="max"):
        np.testing.assert_array_equal(result, np.array([np.nan, np.inf, np.inf, 1, 1], dtype))
    for result in all_reduce(arrays, algorithm=name, op="min"):
        np.testing.assert_array_equal(result, np.array([np.nan, 1, -np.inf, -np.inf, 1], dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ALL_REDUCE)
def test_signed_zeros_do_not_depend_on_the_rank(dtype, name):
    # NumPy's minimum of 0.0 and -0.0 is whichever stands first: exchanging ranks would then hold different bits. All
    # values compare equal, so a test with == sees nothing; and it takes 37 elements to reach NumPy's vector code.
    for n_ranks in (2, 3, 5, 8):
        arrays = [np.zeros(37, dtype) * (-1 if rank % 3 == 1 else 1) for rank in range(n_ranks)]
        for op, negative in (("min", True), ("max", False), ("sum", False)):
            results = all_reduce(arrays, algorithm=name, op=op)
            assert all(np.signbit(result.astype(np.float32)).tolist() == [negative] * 37 for result in results)
        minus = all_reduce([-np.zeros(37, dtype)] * n_ranks, algorithm=name, op="sum")
        assert np.signbit(minus[0].astype(np.float32)).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, BFLOAT16], ids=str)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_bits_give_the_same_bits_on_all_ranks(dtype, data):
    # Random bit patterns hold everything: subnormals, infinities, NaN, both zeros, and sums that depend on the order.
    dtype = np.dtype(dtype)
    n_ranks = data.draw(st.integers(1, 7))
    size = data.draw(st.sampled_from([0, 1, n_ranks - 1, n_ranks, n_ranks + 1, 17]))
    seed = data.draw(st.integers(0, 2**32 - 1))
    name = data.draw(st.sampled_from(ALL_REDUCE))
    op = data.draw(st.sampled_from(["sum", "mean", "min", "max"]))
    random = np.random.default_rng(seed)
    arrays = [np.frombuffer(random.bytes(size * dtype.itemsize), dtype) for _ in range(n_ranks)]
    results = all_reduce(arrays, algorithm=name, op=op)
    assert len({bits(result) for result in results}) == 1


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_algorithms_differ_from_the_exact_sum_by_rounding_only(name):
    # They differ from each other in the last bits, for addition is not associative. Each of n - 1 additions rounds by
    # at most eps / 2 of the sum of absolute values; nothing larger is allowed.
    random = np.random.default_rng(5)
    arrays = [random.standard_normal(101).astype(np.float32) * 10.0 ** random.integers(-4, 4, 101) for _ in range(7)]
    arrays = [array.astype(np.float32) for array in arrays]
    exact = np.sum(np.float64(arrays), axis=0)
    limit = 6 * np.finfo(np.float32).eps / 2 * np.sum(np.abs(np.float64(arrays)), axis=0) * 1.01
    results = all_reduce(arrays, algorithm=name)
    assert np.all(np.abs(results[0] - exact) <= limit)
    assert len({result.tobytes() for result in results}) == 1


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "i8", "f2", "u2"])
def test_the_other_byte_order_is_kept(kind):
    arrays = [np.array([1, 2, 3], ">" + kind) for _ in range(2)]
    for result in all_reduce(arrays):
        assert result.dtype == np.dtype(">" + kind)
        assert result.tolist() == [2, 4, 6]


def test_the_whole_family_keeps_the_types():
    for dtype in [*FLOATS, *INTEGERS]:
        arrays = [np.array([1, 2, 3], dtype) for _ in range(2)]
        assert all(part.dtype == dtype for part in reduce_scatter(arrays))
        assert reduce(arrays).dtype == dtype
        assert broadcast(arrays)[1].dtype == dtype
        assert all_gather(arrays)[1].dtype == dtype
    for array in (np.array([True]), np.array([1j]), np.array([1], np.dtype(BFLOAT16))):
        assert all_gather([array, array])[0].dtype == array.dtype


@pytest.mark.parametrize("op", ["sum", "min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint64", "bool"])
def test_every_reduction_commutes_bit_for_bit(op, dtype):
    if dtype == "bool" and op == "sum":
        return
    random = np.random.default_rng(1)
    a, b = (np.frombuffer(random.bytes(64 * 8), "u1")[:512].view("u1").copy() for _ in range(2))
    if dtype == "bool":
        a, b = a > 127, b > 127
    else:
        a, b = a.view(dtype), b.view(dtype)
        if op == "sum" and a.dtype.kind in "iu":
            a, b = a // 4, b // 4
    with np.errstate(all="ignore"):
        combine = combiner(np.dtype(dtype), op)
        assert bits(combine(a, b)) == bits(combine(b, a))


def test_a_schedule_proven_once_is_not_proven_again_and_still_checked():
    schedule = schedule_for("ring", 3)
    all_reduce([[1]] * 3, algorithm=schedule)
    with pytest.raises(BadInput):
        all_reduce([[1]] * 3, algorithm="ring_reduce_scatter")
    with pytest.raises(BadInput):
        all_reduce([[1]] * 3, algorithm=schedule_for("ring_reduce_scatter", 3))
