"""Each recipe, taken away to an empty folder where tfdistedu cannot be imported, computes what one device computes.

That a recipe ends with status 0 says little: the widely copied loop does too. So what a recipe prints is held against
plain Keras on one device, here, and each check that a recipe makes of itself is shown to fail when it should.
"""

from __future__ import annotations

import re
import runpy
from typing import Any

import numpy as np
import pytest

from tests.fresh_process import ROOT, Finished
from tfdistedu.cli import main
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

# Float32 sums in another order, over some hundred steps, printed with 6 digits. The faults that are looked for (a mean
# of means, a factor of n, a lost batch) are larger than 1e-2.
CLOSE = 2e-4


@pytest.fixture
def run(fresh_processes, tmp_path):
    """Copy a recipe into an empty folder, change some of its text, and run it without tfdistedu."""

    def run_recipe(name: str, *changes: tuple[str, str], n_replicas: int | None = None) -> Finished:
        with pytest.raises(SystemExit) as end:
            main(["recipe", "copy", name, "--to", str(tmp_path), "--force"])
        assert not end.value.code
        copy = tmp_path / f"{name}.py"
        text = copy.read_text(encoding="utf-8")
        if n_replicas is not None:
            changes = (*changes, ("REPLICAS = 4\n", f"REPLICAS = {n_replicas}\n"))
        for old, new in changes:
            assert text.count(old) >= 1, f"{name} holds no {old!r}, so this test would change nothing"
            text = text.replace(old, new)
        copy.write_text(text, encoding="utf-8")
        return fresh_processes.run(copy, cwd=tmp_path, block=("tfdistedu",))

    return run_recipe


def losses_of(finished: Finished) -> list[float]:
    assert finished.status == 0, finished.stdout + finished.stderr
    return [float(number) for number in re.findall(r"mean loss ([\d.]+)", finished.stdout)]


def functions_of(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tfdistedu" / "recipes" / f"{name}.py"), run_name="recipe")


def train_on_one_device(model, optimizer, loss, data, batch: int, epochs: int) -> tuple[list[float], list[float]]:
    """Train by tape alone; give the mean loss an example in each epoch, and the norm of each gradient."""

    @tf.function(reduce_retracing=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            value = tf.reduce_mean(loss(y, model(x, training=True))) + sum(model.losses)
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return value, tf.linalg.global_norm(gradients)

    optimizer.build(model.trainable_variables)
    x, y = data
    losses, norms = [], []
    for _ in range(epochs):
        total = 0.0
        for start in range(0, len(x), batch):
            part = x[start : start + batch], y[start : start + batch]
            value, norm = step(*(tf.constant(array) for array in part))
            total += float(value) * len(part[0])
            norms.append(float(norm))
        losses.append(total / len(x))
    return losses, norms


def crossentropy(y, logits):
    return keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True)


@pytest.mark.parametrize("n_replicas", [1, 3])
def test_the_custom_loop_prints_the_losses_of_one_device(run, n_replicas):
    # 1,285 examples end in a batch of 5: on 3 replicas 2, 2 and 1. Four replicas have a test below.
    recipe = functions_of("mirrored_custom_loop")
    expected, _ = train_on_one_device(
        recipe["make_model"](), keras.optimizers.Adam(0.003), crossentropy, recipe["make_data"](), 64, 2
    )
    finished = run("mirrored_custom_loop", ("EPOCHS = 5", "EPOCHS = 2"), n_replicas=n_replicas)
    np.testing.assert_allclose(losses_of(finished), expected, rtol=CLOSE)
    assert finished.stdout.count("over 1285 examples") == 2
    assert finished.stdout.startswith(f"{n_replicas} replicas on CPU:0")


def test_the_custom_loop_has_gradients_of_the_right_size_and_counts_a_penalty_once(run):
    # Adam rescales what it gets: with it, a gradient n times too large would print nearly the same losses.
    recipe = functions_of("mirrored_custom_loop")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    hidden = layers.Dense(64, "relu", kernel_regularizer=keras.regularizers.L2(0.01))
    model = keras.Sequential([layers.Input((20,)), hidden, layers.Dense(10)])
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    expected, _ = train_on_one_device(model, optimizer, crossentropy, recipe["make_data"](), 64, 5)
    finished = run(
        "mirrored_custom_loop",
        ("Adam(0.003)", "SGD(0.05, momentum=0.9)"),
        ('Dense(64, "relu")', 'Dense(64, "relu", kernel_regularizer=keras.regularizers.L2(0.01))'),
    )
    np.testing.assert_allclose(losses_of(finished), expected, rtol=CLOSE)
    assert expected[-1] < 0.4 * expected[0]


def test_fit_prints_the_losses_of_one_device(run):
    recipe = functions_of("mirrored_fit")
    (x, y), (x_test, y_test) = recipe["make_data"]()
    even = len(x) // 64 * 64
    model = recipe["make_model"]()
    expected, _ = train_on_one_device(model, keras.optimizers.Adam(0.003), crossentropy, (x[:even], y[:even]), 64, 2)
    finished = run("mirrored_fit", ("EPOCHS = 5", "EPOCHS = 2"))
    np.testing.assert_allclose(losses_of(finished), expected, rtol=CLOSE)
    counted = np.mean(model(x_test).numpy().argmax(axis=1) == y_test)
    shown = [
        float(number) for number in re.findall(r"test accuracy ([\d.]+), counted by hand ([\d.]+)", finished.stdout)[0]
    ]
    # One of 328 examples may lie on the edge between two classes; four digits are printed.
    np.testing.assert_allclose(shown, counted, atol=1.5 / 328)
    assert finished.stderr.count("Warning") == 0, finished.stderr


def test_fit_refuses_a_global_batch_that_does_not_divide_evenly(run):
    finished = run("mirrored_fit", n_replicas=3)
    assert finished.status == 1
    assert "make GLOBAL_BATCH a multiple of 3" in finished.stderr


@pytest.mark.parametrize("n_replicas", [3, 4])
def test_a_right_step_is_shown_to_equal_one_device(run, n_replicas):
    finished = run("equals_one_device", n_replicas=n_replicas)
    assert finished.status == 0, finished.stderr
    differences = [
        float(number) for number in re.findall(r"difference (?:before the first step )?(\S+)\n", finished.stdout)
    ]
    assert len(differences) == 4
    assert differences[0] == 0
    assert max(differences) < 1e-10


WRONG_STEPS = {
    "divides by its own count": ("tf.reduce_sum(errors + sum(model.losses)) / global_count", "tf.reduce_mean(errors)"),
    "divides by the replicas once more": ("/ global_count", "/ global_count / strategy.num_replicas_in_sync"),
    "clips before adding up": ("SGD(0.1, momentum=0.9)", "SGD(0.1, momentum=0.9, global_clipnorm=0.1)"),
    "reduces twice": (
        "optimizer.apply(tape.gradient(share, model.trainable_variables)",
        "optimizer.apply(tf.distribute.get_replica_context().all_reduce(SUM, tape.gradient(share, model.weights))",
    ),
    "reports a mean of shares": ("strategy.reduce(SUM, strategy.run", 'strategy.reduce("MEAN", strategy.run'),
    "spoils one weight": (
        "optimizer.apply(tape.gradient(share, model.trainable_variables)",
        'optimizer.apply([*tape.gradient(share, model.weights)[:-1], tf.fill([3], np.float64("nan"))]',
    ),
    "does not learn": ("SGD(0.1, momentum=0.9)", "SGD(0.0, momentum=0.9)"),
    "normalises each replica alone": (
        'layers.Dense(16, "tanh"), ',
        'layers.Dense(16, "tanh"), layers.BatchNormalization(), ',
    ),
}


@pytest.mark.parametrize("change", WRONG_STEPS.values(), ids=WRONG_STEPS)
def test_a_wrong_step_is_found_out(run, change):
    finished = run("equals_one_device", change, ("EPOCHS = 3", "EPOCHS = 1"))
    assert finished.status == 1
    assert "NOT EQUAL" in finished.stderr, finished.stderr


@pytest.mark.parametrize(("n_replicas", "micro_batch", "accumulate"), [(4, 16, 4), (3, 16, 4), (4, 64, 1)])
def test_accumulated_and_clipped_steps_are_those_of_the_large_batch(run, n_replicas, micro_batch, accumulate):
    recipe = functions_of("clip_and_accumulate")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential([layers.Input((8,)), layers.Dense(32, "tanh"), layers.Dense(1)])
    # On one device Keras's own clipping is right, so it is the oracle.
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=1.0)
    expected, norms = train_on_one_device(
        model, optimizer, keras.losses.mean_squared_error, recipe["make_data"](), 64, 3
    )
    finished = run(
        "clip_and_accumulate",
        ("EPOCHS = 5", "EPOCHS = 3"),
        ("MICRO_BATCH = 16 ", f"MICRO_BATCH = {micro_batch} "),
        ("ACCUMULATE = 4 ", f"ACCUMULATE = {accumulate} "),
        n_replicas=n_replicas,
    )
    np.testing.assert_allclose(losses_of(finished), expected, rtol=CLOSE)
    norms = np.reshape(norms, (3, 11))
    clipped = [int(number) for number in re.findall(r"(\d+) clipped", finished.stdout)]
    assert clipped == (norms > 1.0).sum(axis=1).tolist()
    assert 0 < clipped[0] < 11  # it binds, and not always
    largest = [float(number) for number in re.findall(r"largest norm ([\d.]+)", finished.stdout)]
    np.testing.assert_allclose(largest, norms.max(axis=1), atol=1e-3)  # printed with three digits


@pytest.mark.parametrize(("n_replicas", "global_batch"), [(4, 64), (4, 8)])
def test_batch_normalisation_and_metrics_are_those_of_one_device(run, n_replicas, global_batch):
    # Without dropout, whose masks are meant to differ. With batches of 8, then 5, the first replica has 2 examples in
    # both: a graph that knows this for a constant on one replica only does not fit the others, and crashes.
    recipe = functions_of("batchnorm_dropout_metrics")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    hidden = [layers.Dense(64, use_bias=False), layers.BatchNormalization(), layers.ReLU()]
    model = keras.Sequential([layers.Input((20,)), *hidden, layers.Dense(10)])
    x, y = recipe["make_data"]()
    expected, _ = train_on_one_device(
        model, keras.optimizers.SGD(0.05, momentum=0.9), crossentropy, (x[:69], y[:69]), global_batch, 2
    )
    finished = run(
        "batchnorm_dropout_metrics",
        ("EPOCHS = 5", "EPOCHS = 2"),
        ("GLOBAL_BATCH = 64", f"GLOBAL_BATCH = {global_batch}"),
        ("ReplicaDropout(0.2, seed=1)", "ReplicaDropout(0.0, seed=1)"),
        ('return x.astype("float32"), y', 'return x.astype("float32")[:69], y[:69]'),
        ("different == strategy.num_replicas_in_sync", "different == 1"),
        n_replicas=n_replicas,
    )
    # Synchronised, the variance is E[x^2] - E[x]^2, which loses some digits in float32.
    np.testing.assert_allclose(losses_of(finished), expected, rtol=1e-3)
    assert "copies differ by 0.0e+00" in finished.stdout


def test_dropout_masks_differ_and_two_runs_are_the_same(run):
    shorter = ("EPOCHS = 5", "EPOCHS = 3")
    once, again = (run("batchnorm_dropout_metrics", shorter) for _ in range(2))
    assert once.status == 0, once.stderr
    assert "4 different masks" in once.stdout
    assert once.stdout == again.stdout
    accuracy = [float(number) for number in re.findall(r"accuracy ([\d.]+)", once.stdout)]
    assert accuracy[0] < accuracy[-1] < 1
    assert accuracy[-1] > 0.9


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (("BatchNormalization(synchronized=True)", "BatchNormalization()"), "copies differ by"),
        (("ReplicaDropout(0.2, seed=1)", "layers.Dropout(0.2, seed=1)"), "1 different masks"),
    ],
    ids=["statistics of each replica", "Keras's dropout"],
)
def test_state_as_keras_ships_it_is_found_out(run, change, shown):
    # 64 examples, so that no replica is empty: the statistics are finite, and differ all the same.
    fewer = ('return x.astype("float32"), y', 'return x.astype("float32")[:64], y[:64]')
    finished = run("batchnorm_dropout_metrics", change, fewer)
    assert finished.status == 1
    assert shown in finished.stdout
    assert "not right" in finished.stderr


def test_an_overflow_on_one_replica_skips_the_step_on_all(run):
    # One example of the last replica is large: at this scale its gradients, and no others, leave float16.
    outlier = ('return x.astype("float32"), y', 'x[63] *= 300\n    return x.astype("float32"), y')
    finished = run("mixed_precision_loop", ("2.0**24", "2.0**17"), outlier)
    assert finished.status == 0, finished.stdout + finished.stderr
    skipped, some = np.transpose(re.findall(r"skipped (\d+) of 21 steps, (\d+) of them", finished.stdout)).astype(int)
    assert skipped[0] == 1
    assert skipped.tolist() == some.tolist()
    scales = [int(number) for number in re.findall(r"scale 2\*\*(\d+)", finished.stdout)]
    assert scales == (17 - np.cumsum(skipped)).tolist()
    assert "weights finite and the same on 4 replicas: True" in finished.stdout


def test_a_scale_that_is_too_large_falls_until_steps_are_taken(run):
    finished = run("mixed_precision_loop", ("EPOCHS = 5", "EPOCHS = 2"))
    assert finished.status == 0, finished.stdout + finished.stderr
    skipped = [int(number) for number in re.findall(r"skipped (\d+) of", finished.stdout)]
    scales = [int(number) for number in re.findall(r"scale 2\*\*(\d+)", finished.stdout)]
    assert skipped[0] > 0
    assert scales == (24 - np.cumsum(skipped)).tolist()


def test_mixed_precision_learns_what_float32_on_one_device_learns(run):
    keras.utils.set_random_seed(0)
    last = keras.layers.Dense(10)  # made first, as in the recipe: the order decides which seed a layer draws
    model = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(64, "relu"), last])
    data = functions_of("mirrored_custom_loop")["make_data"]()
    expected, _ = train_on_one_device(model, keras.optimizers.SGD(0.1, momentum=0.9), crossentropy, data, 64, 3)
    finished = run("mixed_precision_loop", ("2.0**24", "2.0**12"), ("EPOCHS = 5", "EPOCHS = 3"))
    # float16 has three digits; a gradient off by a factor of the scale or of n would be off by far more.
    np.testing.assert_allclose(losses_of(finished), expected, rtol=0.03)
    assert finished.stdout.count("skipped 0 of 21") == 3


@pytest.mark.parametrize("n_examples", [2, 64, 197])
def test_evaluation_counts_each_example_once(run, n_examples):
    recipe = functions_of("evaluate_exactly")
    x, y = (array[:n_examples] for array in recipe["make_data"]())
    logits = recipe["make_model"]()(x)
    finished = run("evaluate_exactly", ("x, y = make_data()", f"x, y = (a[:{n_examples}] for a in make_data())"))
    assert finished.status == 0, finished.stdout + finished.stderr
    assert f"examples counted      {n_examples} of {n_examples}\n" in finished.stdout
    accuracy = float(re.search(r"accuracy +([\d.]+),", finished.stdout)[1])
    loss = float(re.search(r"mean loss +([\d.]+),", finished.stdout)[1])
    np.testing.assert_allclose(accuracy, np.mean(np.argmax(logits, axis=1) == y), atol=1e-6)
    np.testing.assert_allclose(loss, np.mean(crossentropy(y, logits)), rtol=1e-5)


def test_evaluation_shows_that_a_mean_of_means_is_something_else(run, tmp_path):
    finished = run("evaluate_exactly")
    accuracy = float(re.search(r"accuracy +([\d.]+),", finished.stdout)[1])
    wrong = float(re.search(r"mean of means \(wrong\) +([\d.]+)", finished.stdout)[1])
    assert abs(accuracy - wrong) > 0.005
    assert [path.name for path in tmp_path.iterdir()] == ["evaluate_exactly.py"]  # nothing is left behind


def test_an_evaluation_of_data_that_was_not_distributed_is_found_out(run):
    finished = run("evaluate_exactly", ("strategy.experimental_distribute_dataset(dataset)", "dataset"))
    assert finished.status == 1
    assert "examples counted      788 of 197" in finished.stdout


def test_a_run_that_does_not_learn_does_not_end_well(run):
    finished = run("mirrored_custom_loop", ("Adam(0.003)", "Adam(0.0)"), ("EPOCHS = 5", "EPOCHS = 2"), n_replicas=1)
    assert finished.status == 1
    assert "did not fall" in finished.stderr
