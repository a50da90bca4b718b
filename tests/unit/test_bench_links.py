"""`tfdistedu bench links`: the fit finds what is true, and the command measures, tells, draws and keeps it."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from tfdistedu.bench import links as bench
from tfdistedu.bench.links import Result, Row, fit, measure
from tfdistedu.cli import app
from tfdistedu.errors import BadInput
from tfdistedu.links.prices import Costs

NAMES = ("direct", "ring", "tree", "naive", "recursive_doubling")
SIZES = (4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20)
TRUE = Costs(latency=2e-5, bandwidth=4e9, reduce_speed=1e10, overhead=3e-5, factors={"tree": 1.25, "ring": 0.8})


def samples(true=TRUE, n_ranks=4):
    return [(name, size, true.seconds(name, n_ranks, size)) for name in NAMES for size in SIZES]


def test_the_fit_finds_the_costs_and_the_factors_that_made_the_times():
    found = fit(samples(), 4, TRUE.reduce_speed, 1e11)
    for name in NAMES:
        for size in (16 << 10, 2 << 20, 32 << 20):  # sizes that it has not seen
            # Known speeds are given, so the factors' own mean moves the rest a little: 5 %, not rounding.
            assert found.seconds(name, 4, size) == pytest.approx(TRUE.seconds(name, 4, size), rel=0.05)
    assert found.factors["tree"] / found.factors["ring"] == pytest.approx(1.25 / 0.8, rel=0.05)


def test_a_few_busy_moments_of_the_machine_move_the_fit_little():
    """Least squares, which a fit is by default, would follow a time that is ten times too long."""
    busy = samples()
    for index in random.Random(5).sample(range(len(busy)), 3):
        name, size, seconds = busy[index]
        busy[index] = (name, size, 10 * seconds)
    found = fit(busy, 4, TRUE.reduce_speed, 1e11)
    errors = sorted(
        abs(found.seconds(name, 4, size) / TRUE.seconds(name, 4, size) - 1)
        for name in NAMES for size in (16 << 10, 2 << 20, 32 << 20)
    )  # fmt: skip
    assert errors[len(errors) // 2] < 0.005  # seen: 0.0000; with squares alone 0.013


def test_no_cost_is_negative_and_no_link_is_faster_than_a_copy():
    # Times that do not grow with the size: the best line through them would have bytes that give time back.
    found = fit([(name, size, 1e-3 - 1e-12 * size) for name in NAMES for size in SIZES], 4, 1e13, 5e12)
    assert found.latency >= 0
    assert found.overhead >= 0
    assert 0 < found.bandwidth <= 5e12


def test_both_links_are_measured_with_real_ranks_and_each_algorithm_and_size_is_predicted():
    fitted, predicted = (4 << 10, 64 << 10), (1 << 10, 1 << 20)
    seen = []
    result = measure((2,), 1, fitted=fitted, predicted=predicted, on_block=seen.append)
    assert len(seen) == 1 + 2 * 4
    cases = {(row.link, row.ranks, row.algorithm, row.bytes) for row in result.rows}
    names = {row.algorithm for row in result.rows}
    assert set(NAMES) <= names
    sizes = (*fitted, *predicted)
    assert cases == {(link, 2, name, size) for link in ("shared_memory", "tcp") for name in names for size in sizes}
    for row in result.rows:
        assert 1e-7 < row.seconds < 10
        assert row.fitted == (row.bytes in fitted)
        costs = Costs(**result.prices[row.link]["2"])
        assert row.predicted == pytest.approx(costs.seconds(row.algorithm, 2, row.bytes))
    # A sane machine adds and copies at 0.1 GB/s or more; a unit that is wrong by a thousand would show.
    for by_ranks in result.prices.values():
        assert 1e8 < by_ranks["2"]["reduce_speed"] < 1e13
        assert 1e7 < by_ranks["2"]["bandwidth"] < 1e13
    json.dumps(result.as_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("ranks", "rounds", "fitted", "words"),
    [((1,), 1, SIZES, "2 or more"), ((2, 2), 1, SIZES, "each once"), ((), 1, SIZES, "2 or more"),
     ((2,), 0, SIZES, "at least 1 round"), ((2,), 1, (), "some of them to fit"), ((2,), 1, (6,), "whole float32")],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused_at_once(ranks, rounds, fitted, words):
    with pytest.raises(BadInput, match=words):
        measure(ranks, rounds, fitted=fitted)


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """The command with times that are known: predictions are right but for one, which is twice too long."""
    costs = TRUE._replace(factors=dict(TRUE.factors))
    rows = []
    for link in ("shared_memory", "tcp"):
        for name in NAMES:
            for size in (1 << 20, 2 << 20, 8 << 20):
                seconds = costs.seconds(name, 2, size)
                times = 2.0 if (link, name, size) == ("tcp", "tree", 8 << 20) else 1.0
                rows.append(Row(link, 2, name, size, seconds, times * seconds, size == 1 << 20))
    result = Result(rows, {link: {"2": costs._asdict()} for link in ("shared_memory", "tcp")})
    asked = []
    monkeypatch.setattr(bench, "measure", lambda *given, **more: asked.append(given) or result)
    monkeypatch.setenv("TFDISTEDU_CACHE", str(tmp_path / "cache"))
    return asked, tmp_path


def test_the_command_tells_draws_and_keeps(made_up):
    asked, folder = made_up
    svg, file = folder / "links.svg", folder / "links.json"
    done = CliRunner().invoke(
        app, ["bench", "links", "--ranks", "2", "--rounds", "7", "--svg", str(svg), "--json", str(file)]
    )
    assert done.exit_code == 0, done.output
    assert asked == [([2], 7)]
    assert "+100%" in done.output
    assert "tree, 8 MiB" in done.output
    assert "is chosen" in done.output
    data = json.loads(file.read_text(encoding="utf-8"))
    assert {(each["link"], each["median"], each["worst"]) for each in data["errors"]} == {
        ("shared_memory", 0.0, 0.0), ("tcp", 0.0, 1.0),
    }  # fmt: skip
    drawn = svg.read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    assert drawn.count("</svg>") == 1
    kept = json.loads((folder / "cache" / "links.json").read_text(encoding="utf-8"))
    assert kept["prices"] == data["prices"]


def test_the_command_keeps_nothing_if_told_so_and_refuses_before_it_measures(made_up):
    asked, folder = made_up
    done = CliRunner().invoke(app, ["bench", "links", "--ranks", "2", "--no-keep", "--json", "-"])
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["rows"]) == 30
    assert not (folder / "cache").exists()
    for wrong in (["--ranks", "two"], ["--json", str(folder / "no" / "where.json")]):
        assert isinstance(CliRunner().invoke(app, ["bench", "links", *wrong]).exception, BadInput)
    assert len(asked) == 1
