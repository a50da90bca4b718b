"""Prices of links: kept, found, refused, told to all by rank 0, and turned into a choice."""

from __future__ import annotations

import json
import threading

import pytest

from tests.ranks import run_threads, values
from tfdistedu.errors import BadInput
from tfdistedu.links import join, new_address, new_token
from tfdistedu.links import prices as prices_module
from tfdistedu.links.choice import CHOICES, choose
from tfdistedu.links.prices import Costs, costs_for, prices_file, store, stored

# Messages cost nothing, or bytes cost nothing: the choice follows from a count that one can do by hand.
BYTES_COUNT = {"latency": 0.0, "bandwidth": 1e9, "reduce_speed": 1e9}
MESSAGES_COUNT = {"latency": 1.0, "bandwidth": 1e15, "reduce_speed": 1e15}


def for_both(costs, ranks="4"):
    return {link: {ranks: costs} for link in ("shared_memory", "tcp")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDISTEDU_CACHE", str(tmp_path / "new" / "folder"))
    return tmp_path / "new" / "folder"


def test_what_was_stored_is_found_again_and_nothing_else_is_left_in_the_folder(folder):
    assert stored() is None
    for costs in (BYTES_COUNT, MESSAGES_COUNT):  # the second replaces the first
        assert store(for_both(costs)) == folder / "links.json"
        assert stored() == for_both(costs)
    assert [each.name for each in folder.iterdir()] == ["links.json"]


@pytest.mark.parametrize(
    "text",
    [
        "", "[1, 2]", '{"machine": 1}', '{"prices": {}}', "\x00",
        json.dumps({"machine": "MINE", "prices": {"tcp": {"2": {"latency": "soon"}}}}),
        json.dumps({"machine": "MINE", "prices": {"tcp": {"two": BYTES_COUNT}}}),
        json.dumps({"machine": "MINE", "prices": [1]}),
        json.dumps({"machine": {"name": "another", "processor": "x", "cores": 2}, "prices": for_both(BYTES_COUNT)}),
    ],
)  # fmt: skip
def test_a_broken_file_and_that_of_another_machine_are_as_good_as_none(folder, text):
    folder.mkdir(parents=True)
    mine = json.dumps(prices_module.this_machine())
    (folder / "links.json").write_text(text.replace('"MINE"', mine), encoding="utf-8")
    assert stored() is None
    with join(0, 1, new_address(), new_token()) as comm:  # and harm no program
        comm.barrier()


def test_the_folder_is_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("TFDISTEDU_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert prices_file() == tmp_path / "cache" / "tfdistedu" / "links.json"
    for ignored in ("", "relative/to/where"):  # the specification says that relative ones are to be ignored
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert prices_file() == tmp_path / ".cache" / "tfdistedu" / "links.json"


def test_a_folder_that_cannot_be_written_is_said(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TFDISTEDU_CACHE", str(tmp_path / "file"))
    with pytest.raises(BadInput, match=r"cannot keep prices in .*file/links\.json .*TFDISTEDU_CACHE"):
        store({})


def test_the_nearest_number_of_ranks_counts_and_ratios_are_what_is_near():
    prices = {"tcp": {str(n): {**BYTES_COUNT, "latency": float(n)} for n in (2, 4, 32)}}
    nearest = {n: costs_for(prices, "tcp", n).latency for n in (1, 2, 3, 5, 11, 12, 1000)}
    assert nearest == {1: 2, 2: 2, 3: 4, 5: 4, 11: 4, 12: 32, 1000: 32}
    assert costs_for(prices, "shared_memory", 2) is None
    assert costs_for({}, "tcp", 2) is None


@pytest.mark.parametrize(
    "costs",
    [
        {"latency": 1.0}, {**BYTES_COUNT, "latency": -1.0}, {**BYTES_COUNT, "bandwidth": 0.0},
        {**BYTES_COUNT, "reduce_speed": float("nan")}, {**BYTES_COUNT, "speed": 1.0}, 3,
        {**BYTES_COUNT, "factors": {"ring": 0.0}}, {**BYTES_COUNT, "factors": [1]},
    ],
)  # fmt: skip
def test_what_is_no_price_is_refused_before_anybody_meets(costs):
    """Met first, ranks would fail one by one in their first call, and the others would wait for them."""
    with pytest.raises(BadInput, match="no prices of links"):
        join(0, 2, new_address(), new_token(), prices={"tcp": {"2": costs}}, deadline=20)


def test_ranks_that_outnumber_are_no_ranks():
    with pytest.raises(BadInput, match="no prices of links"):
        costs_for({"tcp": {"0": BYTES_COUNT}}, "tcp", 2)


def test_the_choice_follows_the_count():
    # 4 ranks: recursive doubling has 2 messages; direct and the ring send 3/2 of the message, it sends 2.
    assert choose(4, 1 << 20, "tcp", for_both(MESSAGES_COUNT)) == "recursive_doubling"
    assert choose(4, 1 << 20, "tcp", for_both(BYTES_COUNT)) == "direct"
    # What others must beat by more than a tenth: the ring costs the same, here a little less.
    for factor, chosen in ((0.95, "direct"), (0.85, "ring")):
        costs = {**BYTES_COUNT, "factors": {"ring": factor}}
        assert choose(4, 1 << 20, "tcp", for_both(costs)) == chosen
    assert choose(4, 1 << 20, "tcp", None) == CHOICES[0] == "direct"


def test_each_piece_pays_for_its_messages(monkeypatch):
    costs = Costs(latency=1.0, bandwidth=1e15, reduce_speed=1e15, overhead=10.0, factors={"tree": 2.0})
    piece = prices_module.pieces.PIECE_BYTES
    for n_bytes, n_pieces in ((0, 1), (piece, 1), (piece + 4, 2), (3 * piece, 3)):
        assert costs.seconds("ring", 3, n_bytes) == pytest.approx(n_pieces * (10 + 4), rel=1e-6)
        assert costs.seconds("tree", 3, n_bytes) == pytest.approx(2 * n_pieces * (10 + 4), rel=1e-6)


def test_rank_0s_prices_count_on_all_ranks(folder):
    """Where each rank used its own, two of these would call another algorithm than rank 0, and all would fail."""
    told = [for_both(MESSAGES_COUNT, "3"), for_both(BYTES_COUNT, "3"), {}]
    address, token, words = new_address(), new_token(), {}

    def rank_main(rank):
        with join(rank, 3, address, token, prices=told[rank], deadline=20) as comm:
            comm.all_reduce([1.0, 2.0])
            words[rank] = comm._desk.prepare((2,), comm.all_reduce([1.0]).dtype, "sum").text.words

    threads = [threading.Thread(target=rank_main, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(words) == {0, 1, 2}
    chosen = choose(3, 16, "shared_memory", told[0])
    assert chosen != "direct"  # else ranks without prices would agree by chance
    assert all(chosen in each for each in words.values()), words


def test_what_was_stored_is_used_by_who_joins_and_nothing_by_who_says_so(folder):
    store(for_both(MESSAGES_COUNT))

    def algorithm(comm):
        return comm._desk.prepare((1000,), comm.all_reduce([1.0]).dtype, "sum").text.words.split(", ")[2]

    assert set(values(run_threads(4, algorithm))) == {"recursive_doubling)"}
    assert set(values(run_threads(4, algorithm, link="tcp"))) == {"recursive_doubling)"}
    assert set(values(run_threads(4, algorithm, prices={}))) == {"direct)"}
