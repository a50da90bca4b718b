"""One question at a time: with the global batch fixed, or with the replica batch fixed."""

from __future__ import annotations

import json

import pytest

from tfdistedu.bench.scaling import as_settings, measure
from tfdistedu.errors import BadInput


def test_the_two_scalings_are_told_apart(strategy_with):
    """A table of n against seconds alone mixes them up: half of "not faster" is a batch that grew unseen."""
    strategy_with(1)
    lines = measure((1, 2), batch=8, rounds=2)
    assert [(line.scaling, line.replicas, line.global_batch, line.replica_batch) for line in lines] == [
        ("strong", 1, 8, 8),
        ("strong", 2, 8, 4),
        ("weak", 1, 8, 8),
        ("weak", 2, 16, 8),
    ]
    for line in lines:
        assert line.examples_per_s == line.global_batch / line.seconds


def test_efficiency_compares_with_one_replica_of_the_same_scaling():
    seconds = {("strong", 1, 8): 1.0, ("strong", 4, 8): 0.25, ("weak", 1, 8): 2.0, ("weak", 4, 32): 4.0}
    assert [line.efficiency for line in as_settings(seconds)] == [1.0, 1.0, 1.0, 0.5]


@pytest.mark.parametrize("wrong", [{"replicas": (2, 4)}, {"replicas": ()}, {"batch": 0}, {"rounds": 0}])
def test_what_cannot_be_compared_is_refused(wrong):
    with pytest.raises(BadInput, match="must begin with 1"):
        measure(**wrong)


def test_the_command_says_what_each_scaling_means_and_promises_little(fresh_processes, tmp_path):
    code = "from tfdistedu.cli import main\nmain(['bench', 'scaling', '--batch', '32', '--json', 'scaling.json'])"
    finished = fresh_processes.run(code, cwd=tmp_path)
    assert (finished.status, finished.stderr) == (0, "")
    assert "can only gain what one small replica leaves idle" in finished.stdout
    lines = json.loads((tmp_path / "scaling.json").read_text())
    assert [(line["scaling"], line["replicas"]) for line in lines] == [
        (scaling, n) for scaling in ("strong", "weak") for n in (1, 2, 4)
    ]


def test_numbers_that_are_none_are_refused_before_the_work(fresh_processes):
    code = "from tfdistedu.cli import main\nmain(['bench', 'scaling', '--replicas', '1,two'])"
    finished = fresh_processes.run(code)
    assert finished.status == 2
    assert "--replicas 1,two: whole numbers" in finished.stderr
