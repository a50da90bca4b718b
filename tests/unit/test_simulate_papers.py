"""Papers on asynchronous training come out on the virtual clock; and a claim that is wrong is seen to be."""

from __future__ import annotations

import json

import pytest

from tfdistedu.cli import main
from tfdistedu.cli.simulate_paper import NAMES, _load
from tfdistedu.errors import BadInput
from tfdistedu.parameter_servers.rules import asp, ssp
from tfdistedu.simulate.delays import ComputeTime
from tfdistedu.simulate.digits_model import DigitsModel
from tfdistedu.simulate.papers import backup_workers, stale_synchronous, staleness_aware
from tfdistedu.simulate.papers.paper import inside
from tfdistedu.simulate.setting import Training
from tfdistedu.simulate.training import simulate


@pytest.fixture(scope="module")
def rows():
    return {name: _load(name).run(3, lambda text: None) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_each_claim_comes_out(rows, name):
    sentences = _load(name).holds(rows[name])
    assert len(sentences) >= 4
    assert [sentence for sentence, true in sentences if not true] == []


def test_mean_staleness_is_n_minus_1_to_two_percent(rows):
    for row in rows["staleness_aware"]:
        n = row["learners"]
        start = n * (n - 1) / 2 / staleness_aware.UPDATES  # the first n find fewer updates before them
        assert row["staleness_mean"] == pytest.approx(n - 1 - start, abs=0.02 * n)


def test_a_claim_that_is_not_true_of_the_rows_is_told(rows):
    """`holds` could say yes to everything: here the best bound stands at an end, and the division does nothing."""
    ssp_rows = [row | {"seconds": 1.0 + number} for number, row in enumerate(rows["stale_synchronous"])]
    assert not stale_synchronous.holds(ssp_rows)[0][1]
    assert not backup_workers.holds([row | {"seconds": 2.0} for row in rows["backup_workers"]])[0][1]
    same = [row | {"accuracy": 0.1} for row in rows["staleness_aware"]]
    assert [true for _, true in staleness_aware.holds(same)] == [True, False, True, False]
    assert not inside([{"seconds": 1.0}, {"seconds": 0.9}, {"seconds": 1.0}])


def test_a_copy_misses_no_more_than_the_slack_allows_and_saves_reads():
    model, slow = DigitsModel(), ComputeTime(slow={0: 3.0})
    narrow = {"compute": slow, "updates": 400, "bandwidth": 1e6, "rate": 0.05}
    for slack in (0, 3):
        rule = ssp(slack)
        anew = simulate(Training(4, rule, **narrow), model)
        copied = simulate(Training(4, rule, cached=True, **narrow), model)
        assert copied.staleness_max <= rule.bound(4)
        assert copied.updates == anew.updates == 400
        if slack:  # a copy is older than what one reads anew, and costs no message
            assert copied.staleness_mean > anew.staleness_mean
            assert copied.seconds < anew.seconds


def test_one_worker_with_a_copy_trains_as_without():
    """It sees its own updates; a copy that did not have them would lag, and the weights would differ."""
    model = DigitsModel()
    fresh = simulate(Training(1, ssp(0), updates=50), model)
    copied = simulate(Training(1, ssp(5), updates=50, cached=True), model)
    assert copied.weights.tobytes() == fresh.weights.tobytes()
    assert copied.staleness == {0: 50}
    assert copied.seconds < fresh.seconds


@pytest.mark.parametrize("given", [{"rule": asp()}, {"rule": ssp(1), "compensation": 0.1}])
def test_copies_belong_to_ssp(given):
    with pytest.raises(BadInput, match=r"cached=True\): copies that may be old belong to ssp\(slack\)"):
        Training(2, cached=True, **given)


def test_the_command_lists_runs_draws_and_refuses(capsys, tmp_path):
    def call(*arguments):
        with pytest.raises(SystemExit) as done:
            main(["simulate", "paper", *map(str, arguments)])
        captured = capsys.readouterr()
        return done.value.code, captured.out, captured.err

    code, out, _ = call("--json", "-")
    assert (code, [each["name"] for each in json.loads(out)["papers"]]) == (0, list(NAMES))
    code, out, _ = call()
    assert code == 0
    assert all(name in out for name in NAMES)
    code, out, err = call("stale_synchronous", "--plot", tmp_path / "a.svg", "--json", tmp_path / "a.json")
    assert code == 0, out
    assert "true   the shortest time to the target has a slack inside" in out
    assert "Not from here:" in out
    assert "\x1b" not in out + err
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").count("<path") > 10
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["papers"][0]
    assert [row["slack"] for row in found["rows"]] == list(stale_synchronous.SLACKS)
    assert all(sentence["true"] for sentence in found["holds"])
    code, _, err = call("einstein")
    assert code == 2
    assert "there are staleness_aware, stale_synchronous, backup_workers, downpour, and all" in " ".join(err.split())
