"""Each recipe for several workers, run by `tfdistedu run`, where tfdistedu itself cannot be imported by the script.

What they print is held against plain Keras on one device. That they end with status 0 says little: workers that each
train alone do too, with other numbers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest

from tests.fresh_process import ROOT
from tests.processes.test_recipes import CLOSE, crossentropy, functions_of, train_on_one_device


@pytest.fixture
def run(tmp_path):
    """Run a recipe as a cluster; return status and what was printed."""

    def run_recipe(name, workers, *arguments, options=(), change=()):
        copy = tmp_path / f"{name}.py"
        text = (ROOT / "tfdistedu" / "recipes" / f"{name}.py").read_text(encoding="utf-8")
        assert "tfdistedu" not in re.sub(r'^""".*?^"""', "", text, flags=re.S | re.M)
        for old, new in change:
            assert old in text
            text = text.replace(old, new)
        copy.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "tfdistedu", "run", "--workers", str(workers), "--deadline", "100", *options]
        done = subprocess.run(
            [*command, str(copy), *arguments], cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=150
        )
        return done.returncode, done.stdout, done.stderr

    return run_recipe


def of_worker(out, worker, pattern):
    return [float(found) for found in re.findall(rf"\[worker:{worker}\] .*?{pattern}", out)]


@pytest.mark.parametrize("workers", [2, 3])
def test_the_custom_loop_prints_the_losses_of_one_device_on_each_worker(run, workers):
    recipe = functions_of("multi_worker_custom_loop")
    status, out, err = run("multi_worker_custom_loop", workers, change=[("EPOCHS = 5", "EPOCHS = 2")])
    assert status == 0, out + err
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential([layers.Input((20,)), layers.Dense(64, "relu"), layers.Dense(10)])
    expected, _ = train_on_one_device(
        model, keras.optimizers.Adam(0.003), crossentropy, recipe["make_data"](), recipe["GLOBAL_BATCH"], 2
    )
    for worker in range(workers):
        np.testing.assert_allclose(of_worker(out, worker, r"mean loss ([\d.]+) over 1285"), expected, rtol=CLOSE)
        assert f"[worker:{worker}] worker {worker}: {workers} replicas keep step" in out


def test_fit_prints_the_losses_and_the_accuracy_of_one_device(run):
    recipe = functions_of("multi_worker_fit")
    status, out, err = run("multi_worker_fit", 2, change=[("EPOCHS = 5", "EPOCHS = 2")])
    assert status == 0, out + err
    (x, y), test = recipe["make_data"]()
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential([layers.Input((20,)), layers.Dense(64, "relu"), layers.Dense(10)])
    batch = recipe["GLOBAL_BATCH"]
    whole = len(x) // batch * batch  # the recipe drops the short batch, and says why
    expected, _ = train_on_one_device(
        model, keras.optimizers.Adam(0.003), crossentropy, (x[:whole], y[:whole]), batch, 2
    )
    right = np.mean(model(test[0]).numpy().argmax(axis=1) == test[1])
    for worker in range(2):
        np.testing.assert_allclose(of_worker(out, worker, r"mean loss ([\d.]+)"), expected, rtol=CLOSE)
        # Printed with 4 digits; float32 may turn one of 328 examples over.
        assert of_worker(out, worker, r"test accuracy ([\d.]+)")[0] == pytest.approx(right, abs=1.1 / 328)


@pytest.mark.parametrize("workers", [2, 3])
def test_each_example_comes_exactly_once(run, workers):
    status, out, err = run("input_exactly_once", workers)
    assert status == 0, out + err
    for worker in range(workers):
        for name in ("memory", "files"):
            for epoch in (1, 2):
                assert f"[worker:{worker}] {name}, epoch {epoch}: 100 examples, 0 more than once, 0 never" in out


def test_the_recipe_for_input_sees_what_goes_wrong(run):
    """Shuffled without a seed, then shared out: the widely made mistake (R21). And fewer files than workers (R19)."""
    wrong = [("np.random.default_rng([SEED, epoch])", "np.random.default_rng()"), ("FILES = 4", "FILES = 2")]
    status, out, err = run("input_exactly_once", 2, change=wrong)
    assert status == 1, out + err
    assert re.search(r"memory, epoch 1: 100 examples, [1-9]\d* more than once, [1-9]\d* never", out)
    assert "files, epoch 1: 100 examples, 0 more than once, 0 never" in out
    status, out, err = run("input_exactly_once", 3, change=[("FILES = 4", "FILES = 2")])
    assert status == 1
    assert "3 workers and 2 files" in err + out


def test_a_crash_changes_no_bit_of_the_weights(run, tmp_path):
    status, out, err = run("resume_after_a_crash", 2, "--folder", "undisturbed")
    assert status == 0, out + err
    weights = set(re.findall(r"21 steps, weights (\w{16})", out))
    assert len(weights) == 1
    status, out, err = run("resume_after_a_crash", 2, "--folder", "crashed", "--crash-at", "9",
                           options=["--restarts", "1"])  # fmt: skip
    assert status == 0, out + err
    assert "[worker:1] worker 1: killed" in out
    assert re.search(r"\[worker:0\] worker 0: resumed from \S*crashed/ckpt-\d+, position \[1, 0\]", out), out
    assert set(re.findall(r"21 steps, weights (\w{16})", out)) == weights
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["crashed", "undisturbed"]
    # And the comparison can fail: from the same checkpoint with another order of the data the weights are others.
    shutil.rmtree(tmp_path / "crashed")
    status, out, err = run("resume_after_a_crash", 2, "--folder", "crashed", change=[("SEED = 7", "SEED = 8")])
    assert set(re.findall(r"21 steps, weights (\w{16})", out)).isdisjoint(weights)


@pytest.mark.parametrize("name", ["multi_worker_fit", "multi_worker_custom_loop", "input_exactly_once",
                                  "resume_after_a_crash"])  # fmt: skip
def test_a_recipe_without_other_workers_says_so_instead_of_training_alone(name, tmp_path, fresh_processes):
    shutil.copy(ROOT / "tfdistedu" / "recipes" / f"{name}.py", tmp_path)
    done = fresh_processes.run(tmp_path / f"{name}.py", cwd=tmp_path, block=("tfdistedu",))
    assert done.status == 1
    assert "TF_CONFIG names no other worker, so this one would train alone" in done.stderr


def test_the_recipe_of_a_test_passes_and_its_own_check_can_fail(tmp_path):
    text = (ROOT / "tfdistedu" / "recipes" / "pytest_two_workers.py").read_text(encoding="utf-8")
    (tmp_path / "pytest_two_workers.py").write_text(text, encoding="utf-8")
    # Without the count of all workers' examples each would take a mean of its own, twice too large together.
    (tmp_path / "pytest_wrong.py").write_text(text.replace("/ 4.0  #", "/ 2.0  #"), encoding="utf-8")
    results = {}
    for file in ("pytest_two_workers.py", "pytest_wrong.py"):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", file]
        results[file] = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=150)
    assert results["pytest_two_workers.py"].returncode == 0, results["pytest_two_workers.py"].stdout
    wrong = results["pytest_wrong.py"]
    assert wrong.returncode == 1
    assert "1 failed, 1 passed" in wrong.stdout
    assert "Not equal to tolerance" in wrong.stdout
