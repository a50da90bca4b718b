"""Keras 3's fit on several workers, where it fails as it ships: with the two repairs that it needs.

Shows:  MultiWorkerMirroredStrategy; model and compile in the scope; fit, evaluate and predict, as on one device.
Run:    tfdistedu run --workers 2 multi_worker_fit.py    (or python on each machine, with TF_CONFIG set there)
Avoids: "Invalid reduction dimension 0 for input with 0 dimensions" in fit, a worker that trains alone because nobody
        told it of the others, and a wait without end for a worker that is not there.
"""

import faulthandler
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers

GLOBAL_BATCH = 64  # examples in one step over all workers, as on one device; a multiple of their number
EPOCHS = 5
START_SECONDS, STEP_SECONDS = 120, 60  # how long to wait for workers that do not come, or do not answer


def make_data():  # your data here: features and integer labels, to train and to test; the same on every worker
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1613)
    x = (rng.normal(size=(10, 20))[y] + rng.normal(size=(1613, 20))).astype("float32")
    return (x[:1285], y[:1285]), (x[1285:], y[1285:])


class FitsOnWorkers(keras.Sequential):  # or keras.Model
    """What Keras 3.15 breaks under this strategy, mended. When fit works without it, take it away."""

    def _maybe_symbolic_build(self, *args, **kwargs):
        """Keras would build on a batch that is spread over the workers, and fail: the Input has built it already."""

    def train_step(self, *args, **kwargs):
        # Keras takes the mean of each number in the logs "over axis 0", which a scalar has not: give it one.
        return {name: tf.reshape(value, [1]) for name, value in super().train_step(*args, **kwargs).items()}

    def test_step(self, *args, **kwargs):
        return {name: tf.reshape(value, [1]) for name, value in super().test_step(*args, **kwargs).items()}


def make_strategy():
    """Join the other workers. TF_CONFIG is read here, once, and before TensorFlow has done anything else."""
    cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    workers = len(cluster.get("chief", [])) + len(cluster.get("worker", []))
    if workers < 2:  # TensorFlow would make a strategy of one worker, and say nothing
        sys.exit("TF_CONFIG names no other worker, so this one would train alone")
    # TensorFlow waits for ever for a worker that does not come. This ends the process instead, and shows where it was.
    faulthandler.dump_traceback_later(START_SECONDS, exit=True)
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=STEP_SECONDS)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    faulthandler.cancel_dump_traceback_later()
    return strategy


def distributed(data, **kwargs):
    """Each worker reads everything and keeps its part (DATA). With a file or more for each worker: FILE."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensor_slices(data).batch(GLOBAL_BATCH, **kwargs).with_options(options)


def main():
    strategy = make_strategy()
    print(f"worker {strategy.cluster_resolver.task_id}: {strategy.num_replicas_in_sync} replicas keep step")
    if GLOBAL_BATCH % strategy.num_replicas_in_sync:
        sys.exit(f"fit is exact only for equal shares: make GLOBAL_BATCH a multiple of {strategy.num_replicas_in_sync}")
    train, test = make_data()
    with strategy.scope():
        keras.utils.set_random_seed(0)  # the same first weights as on one device
        model = FitsOnWorkers([layers.Input((20,)), layers.Dense(64, "relu"), layers.Dense(10)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(0.003), loss, metrics=["accuracy"])
    show = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: print(
            f"epoch {epoch + 1}: mean loss {logs['loss']:.6f}, accuracy {logs['accuracy']:.4f}", flush=True
        )
    )
    # A short last batch would count for too much in fit. .shuffle(...), with a seed that all agree on, before .batch.
    dataset = distributed(train, drop_remainder=True)
    history = model.fit(dataset, epochs=EPOCHS, shuffle=False, callbacks=[show], verbose=0).history["loss"]
    accuracy = model.evaluate(distributed(test), verbose=0)[1]  # each example once, over all workers
    by_hand = np.mean(model(test[0]).numpy().argmax(axis=1) == test[1])
    print(f"test accuracy {accuracy:.4f}, counted by hand {by_hand:.4f}, over {len(test[1])} examples")
    if abs(accuracy - by_hand) > 1.5 / len(test[1]) or not history[-1] < history[0]:
        sys.exit("not right: the two accuracies differ, or the loss did not fall")


if __name__ == "__main__":
    main()
