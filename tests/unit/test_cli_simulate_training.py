"""`tfdistedu simulate training`: what it prints and writes is what was simulated, and odd input is named."""

from __future__ import annotations

import json

import pytest

from tfdistedu.cli import main
from tfdistedu.parameter_servers.rules import asp, backup
from tfdistedu.simulate.delays import ComputeTime
from tfdistedu.simulate.setting import Away, Training
from tfdistedu.simulate.training import simulate


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as done:
            main(["simulate", "training", *map(str, arguments)])
        captured = capsys.readouterr()
        return done.value.code, captured.out, captured.err

    return call


def test_the_json_is_the_simulation(run):
    code, out, _ = run(
        "--workers", "1,3", "--rules", "asp,backup:1", "--gradients", 90, "--slow", "2:4", "--leave", "2:1:2",
        "--seed", 5, "--target", 0.5, "--json", "-",
    )  # fmt: skip
    assert code == 0
    rows = {(row["workers"], row["rule"]): row for row in json.loads(out)["rows"]}
    assert list(rows) == [(1, "asp"), (1, "backup"), (3, "asp"), (3, "backup")]
    slow = ComputeTime(slow={2: 4.0})
    for rule, updates in ((asp(), 90), (backup(3, 1), 45)):
        report = simulate(Training(3, rule, updates, compute=slow, seed=5, away=(Away(2, 1.0, 2.0),)))
        row = rows[3, rule.name]
        assert row["updates"] == updates == report.updates
        assert (row["seconds"], row["accuracy"], row["dropped"]) == (report.seconds, report.accuracy, report.dropped)
        assert row["staleness"] == {str(s): count for s, count in sorted(report.staleness.items())}
        assert len(row["curve"]) == len(report.curve)
        assert row["seconds_to_target"] == (at if (at := report.seconds_to(0.5)) < float("inf") else None)


def test_the_table_fits_a_pipe_and_the_plot_is_written(run, tmp_path):
    code, out, err = run("-n", 2, "-r", "bsp,ssp:1", "-g", 40, "--plot", tmp_path / "a.svg")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()[1:3]] == [["2", "bsp", "20"], ["2", "ssp:1", "40"]]
    assert "A model." in out
    assert "\x1b" not in out + err
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-r", "bps"], "--rules 'bps': there are bsp"),
        (["-r", "ssp"], "--rules 'ssp'"),
        (["-r", "ssp:-1"], "--rules 'ssp:-1'"),
        (["-r", "asp:1"], "--rules 'asp:1'"),
        (["-n", "a"], "--workers 'a'"),
        (["-n", "0"], "must be a whole number, 1 or more"),
        (["-n", "20000", "-r", "asp"], "1 to 10000"),
        (["--slow", "1"], "--slow '1'"),
        (["--leave", "1:x"], "--leave '1:x'"),
        (["--leave", "1:5:3"], "returns too soon"),
        (["--kind", "gamma"], "there are constant"),
        (["--plot", "a.txt"], "must end in .png"),
    ],
)
def test_odd_input_is_named(run, arguments, complaint):
    code, _, err = run(*arguments)
    assert (code, complaint in err) == (2, True), err


def test_a_training_that_cannot_go_on_says_so(run):
    code, _, err = run("-n", 2, "-r", "bsp", "--leave", "1:0.5", "-g", 40)
    assert code == 1
    assert "1 workers wait for an update of 2 gradients, and worker(s) 1 left for good" in err
