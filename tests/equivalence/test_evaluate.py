"""Evaluation is exact on any number of replicas: each example counts once, on ragged batches too."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.small import X, Y, batches, mlp, numbers
from tfdistedu.data.batches import batched_dataset, on_replicas
from tfdistedu.step.optimizer import SGD
from tfdistedu.step.replica import make_train_step
from tfdistedu.synchronous.loop import evaluate, make_evaluate

pytestmark = pytest.mark.usefixtures("float64")

N = 13  # in batches of 5: 5, 5, 3; on 4 replicas 2 2 1 0 and 1 1 1 0
LABELS = np.arange(N) % 2
WEIGHTS = np.linspace(0.5, 3.0, N)


def metrics():
    return [
        keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
        keras.metrics.SparseCategoricalCrossentropy(from_logits=True, name="loss"),
    ]


def expected(logits, weights):
    """Compute accuracy and cross-entropy again in NumPy, over all examples at once."""
    right = logits.argmax(1) == LABELS
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(N), LABELS]
    return {"accuracy": np.average(right, weights=weights), "loss": np.average(losses, weights=weights)}


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_accuracy_and_loss_are_those_over_all_examples(strategy_with, n, weighted):
    with strategy_with(n).scope():
        model, mine = mlp(), metrics()
    arrays = (X[:N], LABELS, *([WEIGHTS] if weighted else []))
    result = evaluate(strategy_with(n), model, batched_dataset(arrays, 5), mine, graph=n == 3 and weighted)
    wanted = expected(model(X[:N]).numpy(), WEIGHTS if weighted else None)
    assert result == pytest.approx(wanted, rel=1e-7)  # a metric's counters are float32 in Keras, whatever floatx
    again = evaluate(strategy_with(n), model, batched_dataset(arrays, 4), mine, graph=False)
    assert again == pytest.approx(wanted, rel=1e-7)  # they were reset, and the batch size does not matter


def test_an_evaluation_after_each_epoch_is_traced_once(strategy_with):
    """Traced anew each time it costs more than an epoch, and TensorFlow complains from the fifth time on."""
    strategy, traced = strategy_with(2), []

    class Counting(keras.layers.Layer):
        def call(self, x):
            traced.append(x)
            return x

    with strategy.scope():
        model, mine = keras.Sequential([mlp(), Counting()]), metrics()
        model.build((None, 3))
    evaluate_once, dataset = make_evaluate(strategy, model, mine), batched_dataset((X[:N], LABELS), 5)
    results, counts = [], []
    for _ in range(4):
        results.append(evaluate_once(dataset))
        counts.append(len(traced))
    assert counts[1:] == [counts[0]] * 3
    assert results == [results[0]] * 4  # they were reset
    assert results[0] == evaluate(strategy, model, dataset, mine)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_auc_which_is_no_mean_is_that_over_all_examples(strategy_with, n):
    """A mean of the replicas' or batches' AUCs is another number: its counters have to be added up."""
    with strategy_with(n).scope():
        model = keras.Sequential([mlp(), keras.layers.Dense(1, activation="sigmoid")])
        model.build((None, 3))
        auc = keras.metrics.AUC(name="auc")
    result = evaluate(strategy_with(n), model, batched_dataset((X[:N], LABELS[:, None]), 5), [auc], graph=False)
    scores = model(X[:N]).numpy()
    at_once = keras.metrics.AUC()
    at_once.update_state(LABELS[:, None], scores)
    assert result["auc"] == pytest.approx(float(at_once.result()), rel=1e-6)
    by_batch = []
    for start in range(0, N, 5):
        at_once.reset_state()
        at_once.update_state(LABELS[start : start + 5, None], scores[start : start + 5])
        by_batch.append(float(at_once.result()))
    assert abs(result["auc"] - np.mean(by_batch)) > 1e-3


def test_metrics_of_the_training_step_count_each_example_once(strategy_with):
    """Updated inside of the replicas, read outside: there reading adds the replicas' counters up."""
    strategy = strategy_with(4)
    with strategy.scope():
        model, optimizer, error = mlp(), SGD(0.0), keras.metrics.MeanSquaredError()
    step = make_train_step(strategy, model, optimizer, "mse", metrics=[error], graph=False)
    losses, sizes = [], (5, 1, 3)
    for batch in batches(sizes):
        losses.append(float(step(on_replicas(strategy, batch))))
    wanted = np.mean((model(X[:9]).numpy() - Y[:9]) ** 2)
    assert float(error.result()) == pytest.approx(wanted, rel=1e-6)
    # The losses weigh by examples too; a plain mean over the batches is another number.
    assert np.average(losses, weights=sizes) == pytest.approx(wanted, rel=1e-12)
    assert abs(np.mean(losses) - wanted) > 1e-2


def test_a_mean_fed_with_the_replicas_means_is_not_the_mean(strategy_with):
    """What a metric may be given: one value an example. A replica's mean counts as one, however many it stands for."""
    strategy = strategy_with(4)
    with strategy.scope():
        right, wrong = keras.metrics.Mean(), keras.metrics.Mean()
    values = np.array([0.0, 0.0, 0.0, 0.0, 10.0])  # on 4 replicas: 0 0 | 0 0 | 10 | -
    (distributed,) = on_replicas(strategy, (values,))

    def update(mine):
        right.update_state(mine)
        wrong.update_state(tf.math.divide_no_nan(tf.reduce_sum(mine), tf.cast(tf.size(mine), mine.dtype)))

    strategy.run(update, args=(distributed,))
    assert (float(right.result()), float(wrong.result())) == (2.0, 2.5)  # 10/5, and (0 + 0 + 10 + 0)/4


def test_shares_are_added_a_mean_of_them_is_n_times_too_small(strategy_with):
    strategy = strategy_with(4)
    with strategy.scope():
        model, optimizer = mlp(), SGD(0.0)
    (batch,) = batches((8,))
    step = make_train_step(strategy, model, optimizer, "mse", graph=False)
    wanted = np.mean((model(batch[0]).numpy() - batch[1]) ** 2)
    assert float(step(on_replicas(strategy, batch))) == pytest.approx(wanted, rel=1e-12)
    shares = strategy.run(lambda x, y: tf.reduce_sum((model(x) - y) ** 2) / 16, args=on_replicas(strategy, batch))
    assert float(strategy.reduce("SUM", shares, axis=None)) == pytest.approx(wanted, rel=1e-12)
    assert float(strategy.reduce("MEAN", shares, axis=None)) == pytest.approx(wanted / 4, rel=1e-12)


def test_a_metric_updated_outside_of_the_replicas_counts_once(strategy_with):
    """Older TensorFlow refused it; now it is right for plain numbers. Recorded here, to be told when that changes."""
    with strategy_with(3).scope():
        mean = keras.metrics.Mean()
        mean.update_state([1.0, 3.0])
    strategy_with(3).run(lambda: mean.update_state([2.0]))
    assert float(mean.result()) == 2.0
    assert numbers(mean.variables)[1] == 5  # two, and one from each of three replicas
