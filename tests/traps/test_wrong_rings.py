"""Fifteen wrong rings that people write, each rejected by the test that says why.

Eight are schedules: `verify` rejects six for who is missing, one for the order of additions, and one is a right
all-reduce that is no ring, which only its traffic shows. Seven live in one rank's program, where no schedule can see
them. For each of those seven we also show weaker tests that it passes: they are what people usually write.
"""

from __future__ import annotations

import numpy as np
import pytest

from tfdistedu.collectives import BrokenSchedule, Schedule, Transfer, chunk_bounds, ring, verify
from tfdistedu.collectives.cost import sent_per_link
from tfdistedu.collectives.trace import bytes_per_link
from tfdistedu.errors import TfdisteduError
from tfdistedu.links import Deadlock, run_ranks, try_orders

# --- eight as schedules --------------------------------------------------------------------------------------------


def reduce_scatter(n, steps=None, reduce=True):
    steps = n - 1 if steps is None else steps
    return [[Transfer(r, (r + 1) % n, (r - s - 1) % n, reduce) for r in range(n)] for s in range(steps)]


def all_gather(n, shift=0, direction=1):
    return [[Transfer(r, (r + direction) % n, (r - s + shift) % n, False) for r in range(n)] for s in range(n - 1)]


def gather(n):
    return [[Transfer(r, 0, 0, True) for r in range(1, n)]]


def local_only(n):
    return Schedule("local only", n, n, [])


def right_on_rank_0_only(n):
    return Schedule("right on rank 0 only", n, 1, gather(n))


def one_step_short(n):
    return Schedule("one reduce-scatter step short", n, n, reduce_scatter(n, n - 2) + all_gather(n))


def overwrites(n):
    return Schedule("overwrites instead of adding", n, n, reduce_scatter(n, reduce=False) + all_gather(n))


def all_gather_sends_another_chunk(n):
    return Schedule("all-gather starts with the wrong chunk", n, n, reduce_scatter(n) + all_gather(n, shift=-1))


def all_gather_the_wrong_way(n):
    return Schedule("all-gather goes the wrong way", n, n, reduce_scatter(n) + all_gather(n, direction=-1))


def each_in_its_own_order(n):
    return Schedule("each rank sums in its own order", n, 1, [
        [Transfer((r + k) % n, r, 0, True) for r in range(n) for k in range(1, n)]
    ])  # fmt: skip


def gather_and_broadcast(n):
    return Schedule(
        "gather at rank 0 and broadcast", n, 1, [*gather(n), [Transfer(0, r, 0, False) for r in range(1, n)]]
    )


def refused(schedule) -> BrokenSchedule:
    with pytest.raises(BrokenSchedule) as caught:
        verify(schedule)
    return caught.value


@pytest.mark.parametrize("n", [3, 4, 5, 8])
@pytest.mark.parametrize(
    ("make", "missing", "twice", "says"),
    [
        (local_only, True, False, "Nothing ever arrives there"),
        (right_on_rank_0_only, True, False, "rank 1 lacks"),
        (one_step_short, True, False, "lacks the part of"),
        (overwrites, True, False, "a take-over replaced them"),
        (all_gather_sends_another_chunk, True, False, "lacks the part of"),
        (all_gather_the_wrong_way, True, False, "lacks the part of"),
    ],
)
def test_a_schedule_in_which_somebody_is_missing_is_rejected(make, missing, twice, says, n):
    error = refused(make(n))
    assert (bool(error.missing), bool(error.twice)) == (missing, twice)
    assert says in str(error)
    assert error.rank is not None
    assert error.chunk is not None


def test_the_all_gather_that_goes_the_wrong_way_is_invisible_with_two_ranks():
    # Which is why world size 2 alone proves nothing.
    verify(all_gather_the_wrong_way(2))


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_summing_in_ones_own_order_is_rejected_for_its_bits(n):
    error = refused(each_in_its_own_order(n))
    assert (error.missing, error.twice) == ((), ())
    assert "differ in the last bits" in str(error)


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_gather_and_broadcast_is_a_right_sum_and_no_ring(n):
    verify(gather_and_broadcast(n))  # nothing is wrong with the numbers; only the traffic tells
    assert is_ring_traffic(sent_per_link(ring(n)), n, whole=1)
    assert not is_ring_traffic(sent_per_link(gather_and_broadcast(n)), n, whole=1)


# --- seven in one rank's program -----------------------------------------------------------------------------------


def program(
    wrong_slot=False, rank_order=False, drops_remainder=False, narrow=False, mean=False, in_place=False, whole=False
):
    """A ring as a learner writes it, with one mistake built in."""

    def run(link, x):
        n, rank = link.n_ranks, link.rank
        right, left = (rank + 1) % n, (rank - 1) % n
        if whole:
            return whole_tensors(link, x)
        buffer = x if in_place else x.copy()
        buffer = buffer.astype(np.float32) if narrow else buffer
        bounds = [c * (x.size // n) for c in range(n + 1)] if drops_remainder else chunk_bounds(x.size, n)
        chunk = [slice(bounds[c], bounds[c + 1]) for c in range(n)]
        for s in range(n - 1):
            link.send(buffer[chunk[(rank - s - 1) % n]], right)
            buffer[chunk[(rank - s - 2) % n]] += link.recv(left)
        parts = {rank: buffer[chunk[rank]].copy()}
        for s in range(n - 1):
            link.send(parts[(rank - s) % n], right)
            parts[(rank - s - 1) % n] = link.recv(left)
        if rank_order:  # in the order in which they came, as if that were the order of the chunks
            return np.concatenate([parts[(rank - s) % n] for s in range(n)]).astype(x.dtype)
        for c, part in parts.items():
            target = buffer[chunk[(c + 1) % n if wrong_slot else c]]
            target[: part.size] = part[: target.size]
        return (buffer / n if mean else buffer).astype(x.dtype)

    return run


def whole_tensors(link, x):
    """Passes whole tensors round and adds each as it comes: every rank in another order, n times the bytes."""
    total, travelling = x.copy(), x
    for _ in range(link.n_ranks - 1):
        link.send(travelling, (link.rank + 1) % link.n_ranks)
        travelling = link.recv((link.rank - 1) % link.n_ranks)
        total = total + travelling
    return total


def values(run, sizes=(0, 1, 2, 3, 5, 8, 11), ranks=(1, 2, 3, 4, 5), make=None):
    """Data that depends on rank and index, exact in float64: every element of every rank must be the sum."""
    make = make or (lambda rank, size: 100.0 * (rank + 1) + np.arange(size) * (rank + 2))
    for n in ranks:
        for size in sizes:
            arrays = [make(rank, size) for rank in range(n)]
            expected = np.sum(arrays, axis=0)
            for result in run_ranks(run, arrays).results:
                if result.shape != expected.shape or not np.array_equal(result, expected):
                    return False
    return True


def constant_per_rank(run):
    return values(run, sizes=(4, 8), ranks=(1, 2, 4), make=lambda rank, size: np.full(size, rank + 1.0))


def divisible_lengths(run):
    return all(values(run, sizes=(n, 2 * n), ranks=(n,)) for n in (1, 2, 3, 4, 5))


def single_rank(run):
    return values(run, ranks=(1,))


def exact_integers(run):
    """Sums that no float32 holds."""
    return values(run, sizes=(5,), ranks=(2, 3), make=lambda rank, size: 2.0**25 + 1 + rank + np.arange(size))


def identical_bits(run):
    """Sums that depend on the order of additions, compared between the ranks."""
    random = np.random.default_rng(1)
    for n in (2, 3, 4, 5):
        arrays = [random.standard_normal(33) * 10.0 ** random.integers(-6, 6, 33) for _ in range(n)]
        if len({result.tobytes() for result in run_ranks(run, arrays).results}) != 1:
            return False
    return True


def inputs_unchanged(run):
    arrays = [np.arange(9.0) + rank for rank in range(3)]
    before = [array.copy() for array in arrays]
    run_ranks(run, arrays)
    return all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))


def traffic(run):
    """Only right neighbours are sent to, and 2(n - 1)/n of the message goes over each link."""
    return all(
        is_ring_traffic(bytes_per_link(run_ranks(run, [np.ones(10 * n)] * n).records), n, whole=80 * n)
        for n in (2, 3, 4, 5)
    )


def is_ring_traffic(per_link, n, whole):
    return per_link == {(r, (r + 1) % n): pytest.approx(2 * (n - 1) * whole / n) for r in range(n)}


CHECKS = [values, constant_per_rank, divisible_lengths, single_rank, exact_integers, identical_bits, inputs_unchanged]
CHECKS = {check.__name__: check for check in [*CHECKS, traffic]}

MISTAKES = {
    # mistake: (the check that says why, weaker checks that it passes)
    "wrong_slot": ("values", ["constant_per_rank", "single_rank", "inputs_unchanged", "traffic"]),
    "rank_order": ("values", ["constant_per_rank", "single_rank", "inputs_unchanged", "traffic"]),
    "drops_remainder": (
        "values",
        ["constant_per_rank", "divisible_lengths", "single_rank", "inputs_unchanged", "traffic"],
    ),
    "narrow": ("exact_integers", ["values", "constant_per_rank", "divisible_lengths", "identical_bits"]),
    "mean": ("values", ["single_rank", "identical_bits", "inputs_unchanged", "traffic"]),
    "in_place": ("inputs_unchanged", ["values", "constant_per_rank", "exact_integers", "identical_bits", "traffic"]),
    "whole": ("traffic", ["values", "constant_per_rank", "divisible_lengths", "exact_integers", "inputs_unchanged"]),
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_right_program_passes_every_check(check):
    assert CHECKS[check](program())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_program_is_rejected_by_the_check_that_says_why(mistake):
    check, _ = MISTAKES[mistake]
    assert not CHECKS[check](program(**{mistake: True}))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_weaker_checks_would_have_let_a_wrong_program_pass(mistake):
    passed = [name for name, check in CHECKS.items() if check(program(**{mistake: True}))]
    assert set(MISTAKES[mistake][1]) <= set(passed)


def test_values_inputs_and_traffic_together_reject_all_seven_programs():
    three = ("values", "inputs_unchanged", "traffic")
    assert all(any(not CHECKS[name](program(**{mistake: True})) for name in three) for mistake in MISTAKES)


def test_whole_tensors_round_the_ring_also_differ_in_their_bits():
    assert not identical_bits(program(whole=True))


def test_the_right_program_gives_the_same_bits_in_every_order():
    random = np.random.default_rng(3)
    data = [random.standard_normal(10) for _ in range(4)]
    try_orders(program(), lambda: [x.copy() for x in data], orders=25)


def test_a_ring_that_waits_before_it_sends_is_named_with_its_line():
    def waits_first(link, x):
        received = link.recv((link.rank - 1) % link.n_ranks)  # HERE
        link.send(x, (link.rank + 1) % link.n_ranks)
        return x + received

    with pytest.raises(Deadlock) as caught:
        run_ranks(waits_first, [np.ones(2)] * 3)
    assert caught.value.waiting == {0: 2, 1: 0, 2: 1}
    assert all("# HERE" in line for line in caught.value.lines.values())
    assert isinstance(caught.value, TfdisteduError)
