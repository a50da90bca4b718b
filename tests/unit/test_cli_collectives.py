"""`tfdistedu draw` and `tfdistedu simulate allreduce`: results, files, and clear answers to odd input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from tfdistedu.cli import main
from tfdistedu.cli.units import read_bytes
from tfdistedu.collectives.cost import PRESETS
from tfdistedu.collectives.formulas import price_for


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as done:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return done.value.code, captured.out, captured.err

    return call


def in_a_process(*arguments, **environment):
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    return subprocess.run(
        [sys.executable, "-m", "tfdistedu", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=env | environment,
    )


def test_draw_prints_the_picture_and_no_colour_into_a_pipe():
    done = in_a_process("draw", "ring", "--ranks", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ring: all-reduce, 3 ranks, 3 chunks, 4 rounds\n")
    assert "chunk 0     A..       .B.      +.BC\n" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stdout.isascii()


def test_colours_are_added_where_wanted_and_change_no_letter():
    bare = in_a_process("draw", "ring").stdout
    coloured = in_a_process("draw", "ring", FORCE_COLOR="1", TERM="xterm-256color", COLUMNS="100").stdout
    assert "\x1b[" in coloured
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == bare
    quiet = in_a_process("draw", "ring", FORCE_COLOR="1", NO_COLOR="1", TERM="xterm-256color", COLUMNS="100").stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", quiet)


def test_a_narrow_terminal_gets_a_narrow_picture():
    done = in_a_process("draw", "direct", "--ranks", "6", COLUMNS="40")
    assert max(map(len, done.stdout.splitlines())) <= 40
    assert "5->4 +4" in done.stdout


def test_draw_writes_svg_and_json_to_files(run, tmp_path):
    status, out, err = run("draw", "tree", "--svg", tmp_path / "a.svg", "--json", tmp_path / "a.json")
    assert status == 0
    assert "round 4" in out
    assert "wrote" in err
    assert ET.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    data = json.loads((tmp_path / "a.json").read_text())
    assert (data["name"], data["goal"], len(data["rounds"])) == ("tree", "all_reduce", 4)


def test_draw_writes_only_what_was_asked_for_to_stdout(run):
    assert json.loads(run("draw", "ring", "--json", "-")[1])["n_ranks"] == 4
    assert ET.fromstring(run("draw", "ring", "--svg", "-")[1]).get("role") == "img"
    assert json.loads(run("draw", "ring", "--ranks", 100, "--json", "-")[1])["states"] is None


def test_draw_lists_the_algorithms(run):
    status, out, _ = run("draw", "--list")
    assert status == 0
    assert "all_reduce: " in out
    assert "tree_broadcast" in out


def test_draw_takes_a_root_where_there_is_one(run):
    data = json.loads(run("draw", "tree-broadcast", "--ranks", 3, "--root", 2, "--json", "-")[1])
    assert data["states"][0] == [[[]], [[]], [[2]]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rign"], "Did you mean ring?"),
        (["ring", "--ranks", 0], "--ranks 0: give 1 to 12"),
        (["ring", "--ranks", -1], "--ranks -1"),
        (["ring", "--ranks", 13], "13 ranks are too many for a picture"),
        (["ring", "--ranks", 1000, "--json", "-"], "--ranks 1000"),
        (["ring", "--ranks", 2.5], "valid integer"),
        (["ring", "--ranks", 20, "--json", "-", "--svg", "x.svg"], "20 ranks are too many"),
        (["ring", "--root", 1], "has no root"),
        (["tree_reduce", "--root", 9], "root 9 is no rank"),
        (["ring", "--svg", "-", "--json", "-"], "only one of --svg and --json"),
        (["ring", "--svg", "/no/such/folder/x.svg"], "does not exist"),
        (["ring", "--svg", "/"], "is a folder"),
        ([], "ALGORITHM"),
    ],
)
def test_draw_answers_odd_input_with_status_2(run, arguments, says):
    status, out, err = run("draw", *arguments)
    assert status == 2
    assert says in err
    assert out == ""


def test_simulate_prints_the_seconds_of_the_formulas(run):
    status, out, _ = run("simulate", "allreduce", "--ranks", "2,64,10000", "--bytes", "25MB", "--link", "100gb")
    assert status == 0
    assert "over 100Gb: " in out
    assert "A model, not a measurement" in " ".join(out.split())
    data = json.loads(
        run("simulate", "allreduce", "--ranks", "64", "--bytes", "25MB", "--link", "100Gb", "--json", "-")[1]
    )
    row = data["rows"][0]
    assert row["algorithms"]["ring"]["seconds"] == price_for("ring", 64).seconds(25e6, PRESETS["100Gb"])
    assert row["fastest"] == min(row["algorithms"], key=lambda name: row["algorithms"][name]["seconds"])
    assert data["bytes"] == 25e6


def test_the_fastest_by_size_is_the_fastest_at_every_size(run):
    for link, charges in PRESETS.items():
        data = json.loads(run("simulate", "allreduce", "--link", link, "--json", "-")[1])
        for row in data["rows"]:
            starts = [step["from_bytes"] for step in row["best_for"]]
            assert starts == sorted(starts)
            for size in [10.0**k for k in range(11)]:
                best = [step["algorithm"] for step in row["best_for"] if step["from_bytes"] <= size][-1]
                seconds = {name: price_for(name, row["ranks"]).seconds(size, charges) for name in row["algorithms"]}
                assert seconds[best] <= min(seconds.values()) * (1 + 1e-9)


def test_ones_own_numbers_replace_those_of_the_link(run):
    arguments = ["--latency", 0, "--bandwidth", 1e9, "--reduce-speed", 1e12, "--bytes", 1e9, "--ranks", 4]
    data = json.loads(run("simulate", "allreduce", *arguments, "--json", "-")[1])
    assert data["rows"][0]["algorithms"]["ring"]["seconds"] == pytest.approx(1.5 + 0.75e-3)


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_simulate_draws_a_plot(run, tmp_path, kind):
    status, _, err = run("simulate", "allreduce", "--plot", tmp_path / f"plot.{kind}")
    assert status == 0
    assert "wrote" in err
    assert (tmp_path / f"plot.{kind}").stat().st_size > 5000


def test_simulate_fits_a_narrow_terminal():
    done = in_a_process("simulate", "allreduce", COLUMNS="40")
    assert done.returncode == 0
    assert max(len(line.rstrip()) for line in done.stdout.splitlines()) <= 40


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ranks", "1"], "--ranks 1"),
        (["--ranks", "10001"], "--ranks 10001"),
        (["--ranks", "2,x"], "whole numbers with commas"),
        (["--ranks", ""], "whole numbers"),
        (["--bytes", "5XB"], "--bytes '5XB'"),
        (["--bytes", "-1"], "--bytes '-1'"),
        (["--bytes", "nan"], "--bytes 'nan'"),
        (["--bytes", "1e300"], "10^18"),
        (["--link", "nvlnk"], "Did you mean NVLink?"),
        (["--latency", "-1"], "--latency -1"),
        (["--latency", "nan"], "--latency nan"),
        (["--bandwidth", "0"], "--bandwidth 0"),
        (["--reduce-speed", "inf"], "--reduce-speed inf"),
        (["--algorithms", "ring,tee"], "Did you mean tree?"),
        (["--algorithms", "tree_broadcast"], "no all_reduce algorithm"),
        (["--plot", "plot.txt"], "must end in .png"),
        (["--json", "/no/such/folder/x.json"], "does not exist"),
    ],
)
def test_simulate_answers_odd_input_with_status_2(run, arguments, says):
    status, out, err = run("simulate", "allreduce", *arguments)
    assert status == 2
    assert says in err
    assert out == ""


def test_sizes_are_read_with_decimal_and_binary_units():
    assert [read_bytes(text, "--bytes") for text in ("4096", "25MB", "64 KiB", "1.5GB", "0", "1e6")] == [
        4096,
        25e6,
        65536,
        1.5e9,
        0,
        1e6,
    ]
