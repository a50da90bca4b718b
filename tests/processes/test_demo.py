"""The first thing that a newcomer runs: it must be right, say when something is not, and end cleanly."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import pytest

from tests.fresh_process import ROOT

PATCHED = """
import tfdistedu.bench.demo as bench
import tfdistedu.step.optimizer as optimizer
from tfdistedu.devices import tf
bench.EPOCHS = 2
right = optimizer.all_reduce_sum
def one_gradient_too_large(gradients):
    gradients = right(gradients)
    if tf.distribute.get_strategy().num_replicas_in_sync > 1:
        gradients[0] = gradients[0] * 1.01
    return gradients
optimizer.all_reduce_sum = one_gradient_too_large
from tfdistedu.cli import main
main(["demo", "--json", "out.json"])
"""


@pytest.fixture(scope="module")
def demo(fresh_processes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    code = "from tfdistedu.cli import main\nmain(['demo', '--json', 'out.json', '--svg', 'loss.svg'])"
    finished = fresh_processes.run(code, cwd=folder, timeout=240)
    assert finished.status == 0, finished.stderr
    return finished, folder


def test_every_row_learns_and_equals_one_device(demo):
    _, folder = demo
    rows = json.loads((folder / "out.json").read_text())["rows"]
    assert [(row["way"], row["replicas"]) for row in rows[:3]] == [
        ("one device, fit", 1),
        ("mirrored, fit", 4),
        ("mirrored, custom loop", 4),
    ]
    assert rows[0]["max_weight_difference"] == 0
    for row in rows:
        assert set(row) == {
            "way", "replicas", "accuracy", "loss", "max_weight_difference", "examples_per_s", "seconds",
        }  # fmt: skip
        assert row["accuracy"] >= 0.93
        # Two runs of the same way would give 0; a learning rate 1 % off gives 1e-2. Accuracy alone sees neither.
        assert row["max_weight_difference"] is None or row["max_weight_difference"] < 1e-5
        assert row["examples_per_s"] > 0
        assert row["seconds"] > 0


def test_the_widely_copied_loop_is_shown_to_be_something_else_though_it_learns(demo):
    finished, folder = demo
    (wrong,) = json.loads((folder / "out.json").read_text())["counterexamples"]
    assert wrong["max_weight_difference"] > 0.1
    assert wrong["accuracy"] > 0.5, "it must look like training, or nobody would be fooled"
    assert "4 times too large" in wrong["reason"]
    assert "Not the same: widely copied loop." in finished.stdout


def test_the_output_is_readable_in_a_pipe(demo):
    finished, folder = demo
    assert "\x1b" not in finished.stdout + finished.stderr
    assert max(map(len, finished.stdout.splitlines())) <= 100
    assert finished.stderr.splitlines() == [
        "training: one device, fit (10 epochs)",
        "training: mirrored, fit (10 epochs)",
        "training: mirrored, custom loop (10 epochs)",
        "training: two workers, fit (10 epochs)",
        "training: two workers, custom loop (10 epochs)",
        "training: two ranks, our all-reduce (10 epochs)",
        "training: widely copied loop (10 epochs)",
        "loss curves: loss.svg",
    ], "TensorFlow's noise, or a warning, reached a newcomer"
    root = ElementTree.parse(folder / "loss.svg").getroot()
    assert root.tag.endswith("svg")


def test_the_readme_shows_this_output(demo):
    """Word for word; the numbers are those of another machine."""

    def words(text):
        return re.sub(r"\d[\d.,]*(e[+-]\d+)?", "#", text).split()

    shown = re.search(r"<!-- demo: start .*?```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.S)
    assert words(shown[1]) == words(demo[0].stdout), "paste the output of `make demo` into the README"


def test_one_gradient_a_hundredth_too_large_is_found_and_named(fresh_processes, tmp_path):
    """Accuracy does not see it. Every way on replicas goes through that reduction, so each is named."""
    finished = fresh_processes.run(PATCHED, cwd=tmp_path, timeout=240)
    assert finished.status == 1, finished.stderr
    assert "not the same: mirrored, custom loop: the furthest weight is" in finished.stderr
    assert "not the same: mirrored, fit: the furthest weight is" in finished.stderr
    assert "The same:" not in finished.stdout
    rows = {row["way"]: row for row in json.loads((tmp_path / "out.json").read_text())["rows"]}
    assert rows["one device, fit"]["max_weight_difference"] == 0
    assert rows["mirrored, custom loop"]["max_weight_difference"] > 1e-4


def test_a_result_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    start = time.monotonic()
    words = [sys.executable, "-m", "tfdistedu", "demo", "--json", str(tmp_path / "no" / "out.json")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "does not exist" in done.stderr
    assert "Traceback" not in done.stderr
    assert time.monotonic() - start < 5, "it must not import TensorFlow first"


def test_ctrl_c_ends_with_130_and_one_line():
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, "-m", "tfdistedu", "demo"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr.readline().startswith("training: one device")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "tfdistedu: interrupted"
    assert "accuracy" not in out
