# stub.py is made by `make record`; your copy of it is exercise.py, and nothing overwrites that.
"""Lesson 05_custom_loop: The custom loop that everybody copies.

Why does the loop that most tutorials print train something else on four replicas than on one device?

In exercise.py, replace what says "not started". Then: pytest lessons/05_custom_loop
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfdistedu.devices import tf


def train(
    strategy: tf.distribute.Strategy,
    model: Any,
    optimizer: Any,
    loss: Callable[[Any, Any], Any],
    dataset: tf.data.Dataset,
    epochs: int = 1,
) -> list[float]:
    """Train a model on all replicas of a strategy, so that it ends with the weights that one device would have.

    Args:
        strategy: One device, or `MirroredStrategy` with any number of replicas.
        model: A Keras model made in the strategy's scope; it is not compiled.
        optimizer: A Keras optimizer made there and not yet built: SGD with momentum, say.
        loss: A function of (labels, predictions) that gives one value an example, shape [batch].
        dataset: Global batches `(x, y)`, not distributed. The last batch may be short; a replica may get no example.
        epochs: Passes over the data.

    Returns:
        The mean loss of each epoch: over all its examples, each before the update of its batch.
    """
    raise NotImplementedError("custom_loop.train: not started")  # take this line out and repair the rest

    @tf.function
    def distributed_train_step(inputs):
        features, labels = inputs
        with tf.GradientTape() as tape:
            predictions = model(features, training=True)
            value = tf.reduce_mean(loss(labels, predictions))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return value

    losses = []
    for _ in range(epochs):
        total_loss = 0.0
        num_batches = 0
        for inputs in dataset:
            per_replica_loss = strategy.run(distributed_train_step, args=(inputs,))
            total_loss += strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_loss, axis=None)
            num_batches += 1
        losses.append(float(total_loss / num_batches))
    return losses


def predict_counts() -> dict[str, int]:
    """Predict how often each part of `count_runs.py` runs with 4 replicas, 10 examples, global batches of 4, 2 epochs.

    Return {"batches": ..., "optimizer_iterations": ..., "replica_step_in_python": ..., "replica_step_in_the_graph":
    ...} with your numbers. `count_runs.py` is in this folder: read it, and run it only after you have guessed.
    """
    raise NotImplementedError("custom_loop.predict_counts: not started")
