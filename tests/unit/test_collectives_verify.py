"""A broken schedule gets an error that a learner can act on: which round, rank and chunk, who is missing or twice."""

from __future__ import annotations

import time

import pytest

from tfdistedu.collectives import BrokenSchedule, Schedule, ring, verify
from tfdistedu.collectives.algorithms import ring_all_gather, tree_broadcast
from tfdistedu.collectives.terms import contributions
from tfdistedu.errors import BadInput


def error_of(rounds, n_ranks=3, n_chunks=1, goal="all_reduce", root=0) -> BrokenSchedule:
    with pytest.raises(BrokenSchedule) as caught:
        verify(Schedule("mine", n_ranks, n_chunks, rounds), goal, root)
    return caught.value


def where(error):
    return error.round, error.rank, error.chunk


@pytest.mark.parametrize(
    ("transfers", "says", "rank"),
    [
        ([(0, 0, 0, True)], "rank 0 sends chunk 0 to itself", 0),
        ([(0, 3, 0, True)], "there is no rank 3; ranks are called 0 .. 2; is a `% n_ranks` missing?", 3),
        ([(-1, 0, 0, True)], "there is no rank -1", -1),
        ([(0, 1, 1, True)], "there is no chunk 1; chunks are called 0 .. 0; is a `% n_chunks` missing?", 1),
        ([(0, 1, -1, True)], "there is no chunk -1", 1),
        ([(0, 1, 0, True), (0, 1, 0, True)], "rank 0 sends chunk 0 to rank 1 twice", 1),
        ([(0, 1, 0, True), (2, 1, 0, False)], "rank 1 takes chunk 0 over while another transfer (0 and 2 send)", 1),
        ([(0, 1, 0, False), (2, 1, 0, True)], "rank 1 takes chunk 0 over while another transfer (0 and 2 send)", 1),
        ([(0, 1, 0, False), (2, 1, 0, False)], "rank 1 takes chunk 0 over while another", 1),
    ],
)
def test_each_broken_rule_is_named_with_round_and_rank(transfers, says, rank):
    error = error_of([[], transfers])
    assert says in str(error)
    assert "mine, round 1" in str(error)
    assert (error.round, error.rank) == (1, rank)


def test_any_number_of_reductions_may_land_in_one_chunk():
    verify(Schedule("gather", 3, 1, [[(2, 0, 0, True), (1, 0, 0, True)], [(0, 1, 0, False), (0, 2, 0, False)]]))


def test_who_is_missing_is_named():
    error = error_of([[(1, 0, 0, True)], [(0, 1, 0, False), (0, 2, 0, False)]])
    assert (where(error), error.missing, error.twice) == ((0, 0, 0), (2,), ())
    assert "rank 0 lacks the part of rank 2 in chunk 0" in str(error)
    assert "The last to write there: rank 1, in round 0" in str(error)


def test_who_is_twice_is_named_with_the_round_in_which_it_was_added_again():
    # The end shows only that something is twice; the tree knows where it happened, two rounds earlier.
    rounds = [[(1, 0, 0, True)], [(1, 0, 0, True)], [(2, 0, 0, True)], [(0, 1, 0, False), (0, 2, 0, False)]]
    error = error_of(rounds)
    assert (where(error), error.missing, error.twice) == ((1, 0, 0), (), (1,))
    assert "counts rank 1 more than once" in str(error)
    assert "round 1, where rank 0 adds a part that it already has" in str(error)


def test_a_chunk_that_nothing_ever_reaches_is_told_apart():
    error = error_of([[(1, 0, 0, True), (2, 0, 0, True)], [(0, 1, 0, False)]])
    assert (where(error), error.missing) == ((None, 2, 0), (0, 1))
    assert "Nothing ever arrives there" in str(error)


def test_the_same_contributors_in_different_orders_are_refused():
    # "Everybody adds everybody": each part once everywhere, and the last bits differ. Counting would accept it.
    rounds = [[((r + k) % 3, r, 0, True) for r in range(3) for k in (1, 2)]]
    counts = contributions(Schedule("mine", 3, 1, rounds))[-1]
    assert all(held == {0: 1, 1: 1, 2: 1} for chunks in counts for held in chunks)
    error = error_of(rounds)
    assert (where(error), error.missing, error.twice) == ((0, 1, 0), (), ())
    assert "rank 0 adds ((0 + 1) + 2), rank 1 adds ((1 + 2) + 0)" in str(error)
    assert "differ in the last bits" in str(error)


def test_two_orders_of_one_addition_are_the_same_bits_and_accepted():
    verify(Schedule("swap", 2, 1, [[(0, 1, 0, True), (1, 0, 0, True)]]))


def test_trees_are_compared_by_value_not_by_place_of_addition():
    # Ranks 0 and 1 compute 0 + 1 each for themselves, in different rounds; both then add 2.
    rounds = [
        [(0, 1, 0, True), (1, 0, 0, True)],
        [(2, 0, 0, True)],
        [(2, 1, 0, True)],
        [(1, 2, 0, False)],
    ]
    verify(Schedule("mine", 3, 1, rounds))


def test_what_a_rank_does_not_hold_yet_cannot_be_sent():
    error = error_of([[(1, 2, 0, False)]], goal="broadcast")
    assert where(error) == (0, 1, 0)
    assert "rank 1 sends chunk 0 to rank 2, but rank 1 holds nothing there yet" in str(error)
    # Nor can anything be added to nothing.
    error = error_of([[(0, 1, 0, True)]], goal="broadcast")
    assert where(error) == (0, 1, 0)


def test_each_goal_is_checked_for_what_it_promises():
    half = ring(4).rounds[:3]
    verify(Schedule("half", 4, 4, half), "reduce_scatter")
    assert error_of(half, 4, 4).missing != ()
    verify(Schedule("rest", 4, 4, ring(4).rounds[3:]), "all_gather")
    # In an all-gather the part of a rank that does not own the chunk has nothing to seek there.
    error = error_of(ring_all_gather(4).rounds[:-1], 4, 4, "all_gather")
    assert error.missing == ((error.rank + 1) % 4,) == (error.chunk,)
    assert error_of(tree_broadcast(4).rounds[:-1], 4, 1, "broadcast").missing == (0,)
    assert error_of([[(1, 0, 0, True)]], 3, 1, "reduce").missing == (2,)
    verify(Schedule("to two", 3, 1, [[(0, 2, 0, True), (1, 2, 0, True)]]), "reduce", root=2)
    assert where(error_of([[(0, 2, 0, True), (1, 2, 0, True)]], 3, 1, "reduce", root=1)) == (None, 1, 0)


def test_a_part_that_does_not_belong_there_is_named():
    # Rank 1 adds its own chunk 1 to itself by way of rank 0: in an all-gather, sums have no place.
    rounds = [[(0, 1, 0, False), (1, 0, 1, False)], [(0, 1, 1, True)]]
    error = error_of(rounds, 2, 2, "all_gather")
    assert (where(error), error.twice) == ((1, 1, 1), (1,))
    # The broadcast of a rank that is not the root.
    error = error_of([[(2, 0, 0, False), (2, 1, 0, False)]], goal="broadcast", root=2, n_ranks=4)
    assert (error.rank, error.missing) == (3, (2,))


@pytest.mark.parametrize(
    ("goal", "root", "says"),
    [("allreduce", 0, "is no goal"), ("reduce_scatter", 0, "one chunk a rank"), ("broadcast", 3, "root 3 is no rank")],
)
def test_a_goal_that_does_not_fit_is_refused(goal, root, says):
    with pytest.raises(BadInput, match=says):
        verify(Schedule("mine", 3, 1, []), goal, root)


def test_an_error_stays_readable_for_many_ranks():
    error = error_of([], 200, 1)
    assert len(error.missing) == 199
    assert "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 191 more" in str(error)
    assert len(str(error)) < 250


def test_contributions_survive_being_overwritten():
    # A part that is nowhere any more must not lend its identity to a later term.
    rounds = [[(0, 1, 0, False)], [(2, 0, 0, True)], [(0, 2, 0, True)], [(2, 1, 0, True)]]
    assert contributions(Schedule("mine", 3, 1, rounds))[-1] == [[{0: 1, 2: 1}], [{0: 2, 2: 2}], [{0: 1, 2: 2}]]


def test_verify_is_fast_enough_to_be_called_on_every_schedule():
    schedule = ring(200)
    began = time.perf_counter()
    verify(schedule)
    # About 0.3 s here; ten times that would mean that something grows faster than the number of transfers.
    assert time.perf_counter() - began < 3
