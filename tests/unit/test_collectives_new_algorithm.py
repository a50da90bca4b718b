"""A new algorithm is one function: verifier, executor, plan, price, pictures and command line find it at once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tfdistedu.cli import main
from tfdistedu.collectives import ALGORITHMS, Schedule, Transfer, algorithm, all_reduce, make_plan, verify
from tfdistedu.collectives.cost import lower_bound, sent_per_link
from tfdistedu.collectives.formulas import price_for


@pytest.fixture
def ring_left():
    @algorithm
    def ring_left(n_ranks):
        n = n_ranks
        rounds = [[Transfer(r, (r - 1) % n, (r + s + 1) % n, True) for r in range(n)] for s in range(n - 1)]
        rounds += [[Transfer(r, (r - 1) % n, (r + s) % n, False) for r in range(n)] for s in range(n - 1)]
        return Schedule("ring_left", n, n, rounds)

    yield ring_left
    del ALGORITHMS["ring_left"]


def test_a_ring_that_runs_to_the_left_takes_one_function(ring_left, capsys, tmp_path):
    for n_ranks in range(1, 20):
        verify(ring_left(n_ranks))
    arrays = [np.arange(7) * 10**rank for rank in range(4)]
    assert all(result.tolist() == sum(arrays).tolist() for result in all_reduce(arrays, algorithm="ring-left"))
    assert make_plan(ring_left(4)).n_slots == 1
    assert sent_per_link(ring_left(5)) == {(r, (r - 1) % 5): lower_bound(5) for r in range(5)} | {
        (0, 4): lower_bound(5)
    }
    assert price_for("ring_left", 8) == price_for("ring", 8)
    for arguments in (
        ["draw", "ring-left", "--json", "-"],
        ["draw", "ring_left", "--svg", str(tmp_path / "left.svg")],
        ["simulate", "allreduce", "--algorithms", "ring,ring_left", "--ranks", "2,8"],
    ):
        with pytest.raises(SystemExit) as done:
            main(arguments)
        assert done.value.code == 0
    out = capsys.readouterr().out
    assert "ring_left" in out
    assert json.JSONDecoder().raw_decode(out)[0]["rounds"][0][0] == {"src": 0, "dst": 3, "chunk": 1, "reduce": True}
    assert "<svg" in (tmp_path / "left.svg").read_text()


def test_an_algorithm_for_a_goal_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="is no goal"):
        algorithm(lambda n_ranks: None, goal="allreduce")
