"""Every algorithm is right, for any number of ranks: proven on terms, then run on numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tfdistedu.collectives import ALGORITHMS, Schedule, all_reduce, find, ring, schedule_for, verify
from tfdistedu.collectives.algorithms import (
    chain,
    chain_broadcast,
    direct,
    direct_all_gather,
    direct_reduce_scatter,
    hierarchical,
    ring_all_gather,
    ring_reduce_scatter,
    rings,
    tree_broadcast,
)
from tfdistedu.collectives.terms import contributions
from tfdistedu.errors import BadInput

ALL_REDUCE = ["naive", "ring", "direct", "tree", "recursive_doubling", "halving_doubling", "hierarchical", "chain"]


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_algorithm_proves_for_all_ranks_up_to_64_and_some_near_200(name):
    # Powers of two alone, or 2 and 4 alone, would hide every mistake in folding and in group sizes.
    for n_ranks in [*range(1, 65), 197, 200]:
        verify(ALGORITHMS[name](n_ranks), ALGORITHMS[name].goal)


def test_the_eight_all_reduces_are_there_by_these_names():
    assert sorted(name for name, function in ALGORITHMS.items() if function.goal == "all_reduce") == sorted(ALL_REDUCE)


@pytest.mark.parametrize(
    "name", ["naive_broadcast", "naive_reduce", "tree_broadcast", "tree_reduce", "chain_broadcast"]
)
def test_any_rank_can_be_the_root(name):
    for n_ranks in (1, 2, 3, 5, 8):
        for root in range(n_ranks):
            verify(ALGORITHMS[name](n_ranks, root=root), ALGORITHMS[name].goal, root)


@pytest.mark.parametrize("options", [{"group_size": size} for size in range(1, 9)])
def test_hierarchical_proves_for_every_group_size(options):
    for n_ranks in range(1, 13):
        verify(hierarchical(n_ranks, **options))


@pytest.mark.parametrize("n_chunks", [1, 2, 3, 7])
def test_chain_proves_for_every_number_of_chunks(n_chunks):
    for n_ranks in range(1, 10):
        verify(chain(n_ranks, n_chunks=n_chunks))
        verify(chain_broadcast(n_ranks, n_chunks), "broadcast")


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_every_element_is_the_sum_over_the_ranks_for_every_length(name):
    # Ones, or a constant for each rank, would not see chunks in the wrong place; lengths that the number of ranks
    # divides would not see a lost remainder. Integers are exact, so there is no tolerance.
    for n_ranks in range(1, 8):
        for size in [*range(8), 13, 23]:
            arrays = [1000 * (rank + 1) + np.arange(size) * (rank + 2) for rank in range(n_ranks)]
            for result in all_reduce(arrays, algorithm=name):
                np.testing.assert_array_equal(result, np.sum(arrays, axis=0))


def test_a_ring_is_its_two_halves_and_rank_r_owns_chunk_r_in_between():
    for n_ranks in range(1, 9):
        both = ring_reduce_scatter(n_ranks) + ring_all_gather(n_ranks)
        assert both.rounds == ring(n_ranks).rounds
        assert (direct_reduce_scatter(n_ranks) + direct_all_gather(n_ranks)).rounds == direct(n_ranks).rounds
        # The halves of different algorithms fit too, for both agree on who owns what.
        verify(ring_reduce_scatter(n_ranks) + direct_all_gather(n_ranks))
        verify(direct_reduce_scatter(n_ranks) + ring_all_gather(n_ranks))


def test_in_a_ring_only_right_neighbours_are_sent_to():
    for n_ranks in range(2, 9):
        for transfers in ring(n_ranks).rounds:
            assert [t.dst for t in transfers] == [(t.src + 1) % n_ranks for t in transfers]
            assert sorted(t.src for t in transfers) == list(range(n_ranks))


def test_a_chain_talks_only_to_neighbours_and_never_round_the_corner():
    for transfers in chain(5).rounds:
        assert {abs(t.src - t.dst) for t in transfers} == {1}


def test_one_rank_alone_has_nothing_to_do():
    assert all(function(1).rounds == () for function in ALGORITHMS.values())


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "4", None, True, 1.5])
def test_a_number_of_ranks_that_is_none_is_refused_by_every_algorithm(wrong):
    for function in ALGORITHMS.values():
        with pytest.raises(BadInput, match="n_ranks must be a whole number from 1 up"):
            function(wrong)


def test_numpy_integers_are_numbers_of_ranks():
    assert ring(np.int64(3)) == ring(3)


@pytest.mark.parametrize("root", [-1, 3, 1.0])
def test_a_root_that_is_no_rank_is_refused(root):
    with pytest.raises(BadInput, match="root"):
        tree_broadcast(3, root=root)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(BadInput, match="Did you mean halving_doubling"):
        find("halfing-doubling")
    with pytest.raises(BadInput, match="no all_reduce algorithm 'tree_broadcast'"):
        find("tree_broadcast", "all_reduce")


def test_a_schedule_for_another_number_of_ranks_is_refused():
    with pytest.raises(BadInput, match="is for 3 ranks, and there are 4"):
        schedule_for(ring(3), 4)
    with pytest.raises(BadInput, match="is no algorithm"):
        schedule_for(lambda n_ranks: "ring", 4)


def test_schedules_of_different_shape_cannot_follow_each_other():
    with pytest.raises(BadInput, match="same shape"):
        ring(3) + ring(4)


@pytest.mark.parametrize("wrong", [(1, 0, 0), (1, 0, 0, True, 0), (2 / 2, 0, 0, True), ("1", 0, 0, True), None])
def test_a_transfer_that_is_none_is_refused_with_its_round(wrong):
    with pytest.raises(BadInput, match="mine, round 1: a transfer is"):
        Schedule("mine", 2, 1, [[(0, 1, 0, True)], [wrong]])


def test_a_schedule_needs_whole_numbers_of_ranks_and_chunks():
    for n_ranks, n_chunks in ((2.0, 1), ("2", 1), (2, 0.5), (None, 1)):
        with pytest.raises(BadInput, match="both must be whole numbers"):
            Schedule("mine", n_ranks, n_chunks, [])
    for n_ranks, n_chunks in ((0, 1), (2, 0), (-1, 1)):
        with pytest.raises(BadInput, match="both must be 1 or more"):
            verify(Schedule("mine", n_ranks, n_chunks, []))


def test_numbers_of_numpy_become_plain_ones():
    schedule = Schedule("mine", 2, 1, [[(np.int64(0), np.int32(1), np.uint8(0), np.bool_(True))]])
    assert [type(part) for part in schedule.rounds[0][0]] == [int, int, int, bool]


def test_the_drawing_of_the_ring_in_its_module_is_what_the_ring_does():
    # A drawing by hand drifts from the code; this one cannot.
    drawn = [line.split(maxsplit=2 if "round" in line else 1)[-1] for line in rings.__doc__.splitlines() if "|" in line]
    states = contributions(ring(4))
    assert len(drawn) == 1 + len(states)
    for line, state in zip(drawn[1:], states, strict=True):
        shown = [[set(chunk.lower()) for chunk in rank.split()] for rank in line.split("|")]
        assert shown == [[{"abcd"[part] for part in held} for held in chunks] for chunks in state]
