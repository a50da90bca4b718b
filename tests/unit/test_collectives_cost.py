"""Prices are counted from the schedule, and equal the closed formulas; predictions are checked by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tfdistedu.collectives import ALGORITHMS, Schedule
from tfdistedu.collectives.algorithms import chain, direct, halving_doubling, hierarchical, naive, ring, tree
from tfdistedu.collectives.cost import (
    PRESETS,
    Link,
    Price,
    crossing,
    lower_bound,
    price,
    sent_per_link,
    sent_per_rank,
)
from tfdistedu.collectives.formulas import FORMULAS, price_for
from tfdistedu.errors import BadInput


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_the_count_equals_the_closed_formula_up_to_64_ranks(name):
    for n_ranks in range(2, 65):
        assert price(ALGORITHMS[name](n_ranks)) == FORMULAS[name](n_ranks), n_ranks


def test_every_all_reduce_has_a_formula():
    assert set(FORMULAS) == {name for name, function in ALGORITHMS.items() if function.goal == "all_reduce"}


def test_rounds_of_eight_ranks_by_hand():
    # Written down from the papers, so that a mistake made twice (in the count and in the formula) shows.
    rounds = {name: price_for(name, 8).n_rounds for name in FORMULAS}
    assert rounds == {
        "naive": 2,
        "ring": 14,
        "direct": 2,
        "tree": 6,
        "recursive_doubling": 3,
        "halving_doubling": 6,
        "hierarchical": 6,
        "chain": 20,
    }


def test_bytes_of_eight_ranks_by_hand():
    moved = {name: price_for(name, 8).bytes for name in FORMULAS}
    assert moved == {
        "naive": 14,
        "ring": Fraction(7, 4),
        "direct": Fraction(7, 4),
        "tree": 6,
        "recursive_doubling": 3,
        "halving_doubling": Fraction(7, 4),
        "hierarchical": 4 + Fraction(4, 3),
        "chain": 5,
    }


def test_the_ring_meets_the_lower_bound_on_every_rank_and_only_neighbours_talk():
    for n_ranks in range(1, 65):
        schedule = ring(n_ranks)
        assert sent_per_rank(schedule) == [lower_bound(n_ranks)] * n_ranks
        if n_ranks > 1:
            assert sent_per_link(schedule) == {(r, (r + 1) % n_ranks): lower_bound(n_ranks) for r in range(n_ranks)}


def test_no_all_reduce_sends_less_than_the_lower_bound():
    for name in FORMULAS:
        for n_ranks in range(2, 40):
            assert max(sent_per_rank(ALGORITHMS[name](n_ranks))) >= lower_bound(n_ranks)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_all_ranks_together_send_two_messages_for_each_rank_but_one(name):
    # Whoever adds must get each other part once, and whoever has the sum must give it to each other rank once: n - 1
    # messages each way. Only recursive doubling sends more, for there everybody adds everything.
    for n_ranks in range(1, 65):
        total = sum(sent_per_rank(ALGORITHMS[name](n_ranks)))
        power = 2 ** (n_ranks.bit_length() - 1)
        if name == "recursive_doubling":
            assert total == power * (power.bit_length() - 1) + 2 * (n_ranks - power)
        else:
            assert total == 2 * (n_ranks - 1)


def test_who_sends_how_much_by_hand():
    for n in range(3, 65):
        assert sent_per_rank(naive(n)) == [n - 1] + [1] * (n - 1)
        assert sent_per_rank(chain(n)) == [1] + [2] * (n - 2) + [1]
        all_to_all = direct(n)
        assert sent_per_rank(all_to_all) == [lower_bound(n)] * n
        links = sent_per_link(all_to_all)
        assert (len(links), set(links.values())) == (n * (n - 1), {Fraction(2, n)})
        assert sent_per_rank(tree(n))[0] == (n - 1).bit_length()


def test_direct_and_halving_doubling_meet_the_bound_where_they_promise_it():
    assert all(price(direct(n)).bytes == lower_bound(n) for n in range(2, 20))
    assert all(price(halving_doubling(n)).bytes == lower_bound(n) for n in (2, 4, 8, 16, 32))


def test_all_that_is_sent_goes_over_some_link():
    for function in ALGORITHMS.values():
        schedule = function(6)
        assert sum(sent_per_rank(schedule)) == sum(sent_per_link(schedule).values())


def test_options_change_the_price():
    assert price(chain(4, n_chunks=40)).bytes < price(chain(4, n_chunks=4)).bytes
    assert price(hierarchical(12, group_size=4)).messages == 2 * 2 + 2 * 3


def test_neighbouring_chunks_of_one_transfer_are_one_message_and_others_are_not():
    assert price(Schedule("a", 2, 4, [[(0, 1, c, True) for c in (0, 1, 2)]])).messages == 1
    assert price(Schedule("b", 2, 4, [[(0, 1, c, True) for c in (0, 2, 3)]])).messages == 2


def test_the_two_directions_of_a_port_run_at_once():
    assert price(Schedule("swap", 2, 1, [[(0, 1, 0, True), (1, 0, 0, True)]])) == Price(1, 1, Fraction(1), Fraction(1))
    assert price(Schedule("two", 3, 1, [[(0, 1, 0, True), (0, 2, 0, True)]])) == Price(1, 2, Fraction(2), Fraction(1))


def test_seconds_by_hand():
    # 6 messages of 10 us; 1.5 times 8 MB at 1 GB/s; 0.75 times 8 MB at 2 GB/s.
    link = Link(latency=10e-6, bandwidth=1e9, reduce_speed=2e9)
    assert price(ring(4)).seconds(8e6, link) == pytest.approx(60e-6 + 12e-3 + 3e-3, rel=1e-12)
    assert price(ring(1)).seconds(8e6, link) == 0


def test_at_a_crossing_both_take_the_same_time_and_beside_it_they_change_places():
    link = PRESETS["10GbE"]
    few, many = price(tree(16)), price(ring(16))
    size = crossing(few, many, link)
    assert few.seconds(size, link) == pytest.approx(many.seconds(size, link), rel=1e-9)
    assert few.seconds(size / 2, link) < many.seconds(size / 2, link)
    assert few.seconds(size * 2, link) > many.seconds(size * 2, link)
    assert crossing(many, few, link) == pytest.approx(size)


def test_there_is_no_crossing_where_one_always_wins_or_both_are_equal():
    link = PRESETS["laptop"]
    assert crossing(price(naive(8)), price(ring(8)), link) is None  # as many messages, and more bytes
    assert crossing(price(ring(8)), price(direct(8)), link) is None


def test_formulas_reach_ten_thousand_ranks_and_counting_does_not(monkeypatch):
    assert price_for("ring", 10_000).bytes == lower_bound(10_000)
    monkeypatch.delitem(FORMULAS, "ring")
    assert price_for("ring", 8) == price(ring(8))
    with pytest.raises(BadInput, match="ring has no closed formula"):
        price_for("ring", 10_000)


def test_a_bound_for_no_rank_is_refused():
    with pytest.raises(BadInput):
        lower_bound(0)
