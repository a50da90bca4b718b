"""`bench allreduce` checks before it times, takes turns, and is harmed by no implementation. Speed is measured by hand.

The peers are not here when tests run; a fake one takes their place, with real processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.fresh_process import ROOT
from tfdistedu.bench import allreduce
from tfdistedu.bench.allreduce import as_row, measure
from tfdistedu.bench.implementations import IMPLEMENTATIONS, RANKS, Implementation
from tfdistedu.bench.programs import Programs
from tfdistedu.bench.ranks.block import Work, in_place, timed_block
from tfdistedu.errors import BadInput, MachineCannot

FAKE = Path(__file__).with_name("fake_peer.py")
BY_NAME = {one.name: one for one in IMPLEMENTATIONS}


def fake_programs(mode: str, n_ranks: int) -> Programs:
    def commands(address: str) -> list[list[str]]:
        words = [sys.executable, str(FAKE), str(RANKS), mode, address]
        return [[*words, str(rank), str(n_ranks)] for rank in range(n_ranks)]

    return Programs("fake", n_ranks, commands)


def fake(mode: str, name: str = "fake", is_peer: bool = True) -> Implementation:
    return Implementation(name, lambda n_ranks, peers: fake_programs(mode, n_ranks), is_peer)


class Told:
    """Ranks that are no processes: each block gives the next of some times."""

    def __init__(self, name, log, blocks):
        self.name, self.log, self.blocks = name, log, iter(blocks)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self.log.append(f"{self.name} ends")

    def block(self, elements, calls, deadline):
        self.log.append(f"{self.name} {elements}")
        return next(self.blocks)


# --- one rank ---


def test_a_wrong_sum_is_found_before_anything_is_timed():
    """Data that is the same everywhere would not tell a chunk in the wrong place; here each index differs."""
    data = np.zeros(2000, np.float32)
    done = []

    def swaps_two_chunks():
        done.append("call")
        data[:] = np.concatenate([data[1000:], data[:1000]])

    with pytest.raises(ValueError, match=r"wrong sum on rank 0: element 0 of 2000 is 1000\.0 and should be 0\.0"):
        timed_block(in_place(data, swaps_two_chunks), 0, 1, 2000, 5)
    assert done == ["call"]


def test_the_timed_calls_follow_each_other_with_nothing_between_and_cannot_overflow():
    """Reduced in place, ones would be inf after 128 calls on two ranks, and inf has another speed."""
    log, held = [], np.zeros(3, np.float32)
    work = Work(lambda values: (log.append("fill"), np.copyto(held, values)), lambda: log.append("call"), lambda: held)
    assert len(timed_block(work, 0, 1, 3, 200)) == 200
    assert log == ["fill", "call", "fill"] + ["call"] * 202
    assert not held.any()


# --- turns, medians, rows ---


def test_implementations_take_turns_and_a_call_is_as_slow_as_its_slowest_rank():
    log = []
    blocks = {
        "one": [[[1.0, 2.0, 9.0], [4.0, 1.0, 1.0]], [[3.0, 3.0, 3.0], [1.0, 1.0, 1.0]]],
        "two": [[[0.5] * 3] * 2] * 2,
    }
    ours = [Implementation(name, lambda n, peers, name=name: Told(name, log, blocks[name]), False) for name in blocks]
    result = measure([2], [4000], rounds=2, implementations=ours)
    assert log == ["one 1000", "two 1000", "one 1000", "two 1000", "two ends", "one ends"]
    one, two = result.rows
    assert (one.implementation, one.seconds, one.calls) == ("one", 3.0, 6)  # 4 2 9 3 3 3; rank 0 alone: also 3
    assert (one.low, one.high) == (3.0, 3.75)
    assert (two.seconds, two.algbw, two.busbw) == (0.5, 8e-6, 8e-6)
    assert as_row("x", 8, 8 * 10**9, [1.0, 1.0]).busbw == 14.0  # 2 * 7/8 of 8 GB/s


def test_json_has_the_rows_and_says_who_is_missing():
    result = measure([2, 3], [64, 4096], rounds=1, implementations=[fake("right")], block_seconds=0.001)
    data = json.loads(json.dumps(result.as_json(), allow_nan=False))
    assert [(row["ranks"], row["bytes"]) for row in data["rows"]] == [(2, 64), (2, 4096), (3, 64), (3, 4096)]
    for row in data["rows"]:
        assert list(row) == ["implementation", "ranks", "bytes", "seconds", "algbw", "busbw"]
        assert row["implementation"] == "fake"
        assert row["algbw"] == row["bytes"] / row["seconds"] / 1e9
        assert row["busbw"] == row["algbw"] * 2 * (row["ranks"] - 1) / row["ranks"]
    assert [spread["calls"] for spread in data["spread"]] == [3] * 4
    assert (data["missing"], data["failed"]) == ({}, {})


def test_no_call_is_timed_less_than_three_times_nor_more_than_three_hundred():
    assert [allreduce._calls(seconds, 0.25) for seconds in ([], [1.0], [0.01], [1e-6])] == [3, 3, 25, 300]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"ranks": [1]}, "2 or more"),
        ({"ranks": []}, "2 or more"),
        ({"ranks": [2, 2]}, "each once"),
        ({"sizes": [6]}, "4 bytes"),
        ({"sizes": [0]}, "4 bytes"),
        ({"rounds": 0}, "at least 1 round"),
    ],
)
def test_what_cannot_be_measured_is_refused(wrong, told):
    with pytest.raises(BadInput, match=told):
        measure(**{"ranks": [2], "sizes": [64], "rounds": 1, "implementations": []} | wrong)


# --- peers that are absent, crash, hang, or are wrong ---


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("crash", "with 2 ranks: rank 1 ended before it answered: Error: a rank of the fake peer ends itself"),
        ("hang", "with 2 ranks: no answer within 4 s from rank 1"),
        (
            "wrong",
            "with 2 ranks: rank 1: ValueError: wrong sum on rank 1: "
            "element 15 of 16 is 32.0 and should be 31.0; elements wrong: 1",
        ),
    ],
)
def test_a_peer_that_breaks_is_named_with_the_rank_and_the_others_go_on(mode, told):
    both = [fake(mode, "broken"), fake("right", "sound")]
    result = measure([2], [64, 128], rounds=1, implementations=both, block_seconds=0.001, deadline=4)
    assert result.failed == {"broken": told}
    assert [(row.implementation, row.bytes) for row in result.rows] == [("sound", 64), ("sound", 128)]


def test_a_peer_that_does_not_start_is_missing_and_one_of_ours_has_failed():
    result = measure([2], [64], 1, implementations=[fake("no start", "peer"), fake("no start", "ours", is_peer=False)])
    told = "with 2 ranks: it does not start (status 1): ImportError: no module named fake"
    assert (result.missing, result.failed) == ({"peer": told}, {"ours": told})


def test_a_peer_that_is_not_installed_says_what_would_bring_it(tmp_path, monkeypatch):
    for name in ("gloo", "openmpi"):
        with pytest.raises(MachineCannot, match=r"no environment .*nowhere with .*; `make peers` makes it"):
            BY_NAME[name].start(2, tmp_path / "nowhere")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / "lib" / "python3" / "site-packages" / "mpi4py").mkdir(parents=True)
    with pytest.raises(MachineCannot, match="holds no torch"):
        BY_NAME["gloo"].start(2, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineCannot, match="apt-get install openmpi-bin libopenmpi-dev"):
        BY_NAME["openmpi"].start(2, tmp_path)


# --- nothing is left ---


def gone(pids: list[int], folder: str) -> bool:
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids) and not os.path.exists(folder)


@pytest.mark.parametrize("mode", ["right", "hang"])
def test_the_end_of_the_context_ends_all_ranks_also_stopped_ones(mode):
    with fake_programs(mode, 2) as ranks:
        pids, folder = [process.pid for process in ranks._processes], ranks._folder
        ranks.block(16, 1, 20) if mode == "right" else os.kill(pids[1], signal.SIGSTOP)
        assert not gone(pids, folder)
    assert gone(pids, folder)


@pytest.mark.parametrize("mode", ["hang", "right"])
def test_ranks_of_a_killed_launcher_end_idle_or_out_of_the_middle_of_a_call(mode):
    code = (
        "import time\nfrom tests.processes.test_bench_allreduce import fake_programs\n"
        f"with fake_programs({mode!r}, 2) as ranks:\n"
        "    print(ranks._folder, *[p.pid for p in ranks._processes], flush=True)\n"
        "    ranks.block(16, 9, 600)\n"
        "    time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as launcher:
        folder, *pids = launcher.stdout.readline().split()
        time.sleep(0.5)  # so that rank 1 is in the call; it ends as well if it is not yet
        launcher.kill()
    end = time.monotonic() + 30
    while not gone(pids, folder) and time.monotonic() < end:
        time.sleep(0.05)
    assert gone(pids, folder)


# --- the real ones, tiny, and the command ---


def test_every_implementation_of_this_package_gives_right_sums_on_real_processes():
    ours = [one for one in IMPLEMENTATIONS if not one.is_peer]
    assert "tensorflow_ring" in {one.name for one in ours}
    result = measure([2], [8, 4096], rounds=1, implementations=ours, block_seconds=0.001)
    assert (result.missing, result.failed) == ({}, {})
    assert [(row.bytes, row.implementation) for row in result.rows] == [
        (size, one.name) for size in (8, 4096) for one in ours
    ]


def command(fresh_processes, *words, cwd=None):
    return fresh_processes.run(f"from tfdistedu.cli import main\nmain(['bench', 'allreduce', *{words!r}])", cwd=cwd)


def test_the_command_names_what_is_missing_and_ends_well(fresh_processes):
    done = command(fresh_processes, "--only", "gloo,openmpi", "--peers", "nowhere", "--sizes", "64", "--json", "-")
    assert done.status == 0
    assert json.loads(done.stdout)["rows"] == []
    assert set(json.loads(done.stdout)["missing"]) == {"gloo", "openmpi"}
    told = " ".join(done.stderr.split())
    for name in ("gloo", "openmpi"):
        assert f"left out: {name}. there is no environment nowhere" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--only", "nccl"), "--only nccl: there is no such implementation; there are "),
        (("--ranks", "2,four"), "--ranks 2,four: whole numbers"),
        (("--ranks", "1"), "2 or more"),
        (("--sizes", "4KiB,12XB"), "--sizes '12XB'"),
        (("--sizes", "0.5B"), "whole number of bytes"),
    ],
)
def test_bad_usage_is_told_before_the_work(fresh_processes, words, told):
    done = command(fresh_processes, *words)
    assert (done.status, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


def test_the_table_and_the_plot_show_every_row(monkeypatch, capsys, tmp_path):
    from tfdistedu.cli import bench_allreduce

    rows = [as_row(name, n, size, [1e-4, 2e-4, 3e-4]) for n in (2, 4) for size in (4096, 1 << 20) for name in "ab"]
    result = allreduce.Result(rows, {}, {"c": "hung"})
    monkeypatch.setenv("COLUMNS", "44")
    bench_allreduce._print(result, [2, 4])
    printed = capsys.readouterr().out
    assert printed.count("200 us") == len(rows)
    assert max(map(len, printed.splitlines())) <= 44
    assert "4 KiB" in printed
    assert "1 MiB" in printed
    bench_allreduce._draw(result, [2, 4], str(tmp_path / "plot.svg"))
    bench_allreduce._draw(result, [2, 4], str(tmp_path / "again.svg"))
    text = (tmp_path / "plot.svg").read_text()
    assert text.startswith("<?xml")
    assert "Bus bandwidth" in text
