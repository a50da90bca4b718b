"""Distributing the dataset repairs the loop."""

from collections.abc import Callable
from typing import Any

from tfdistedu.devices import tf

ID = "only_distributed"
EXERCISE = "train"
BELIEVES = "Distributing the dataset repairs the loop."
TRUE = "Now n means of parts are added up: n times too large, and wrong for ragged batches."
QUESTION = "Each replica now takes the mean of its own part. What does the optimizer make of n such gradients?"
CAUGHT_BY = "test_two_replicas_take_the_step_of_one_device"
SEEN = "ours"


def train(
    strategy: tf.distribute.Strategy,
    model: Any,
    optimizer: Any,
    loss: Callable[[Any, Any], Any],
    dataset: tf.data.Dataset,
    epochs: int = 1,
) -> list[float]:

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
        for inputs in strategy.experimental_distribute_dataset(dataset):
            per_replica_loss = strategy.run(distributed_train_step, args=(inputs,))
            total_loss += strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_loss, axis=None)
            num_batches += 1
        losses.append(float(total_loss / num_batches))
    return losses


def twin(strategy, model, optimizer, loss, dataset, epochs=1):
    def one_step(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            value = tf.math.reduce_mean(loss(y, model(x, training=True)))
        weights = model.trainable_weights
        optimizer.apply(tape.gradient(value, weights), weights)
        return value

    parts = strategy.experimental_distribute_dataset(dataset)
    graph, history = tf.function(one_step), []
    for _ in range(epochs):
        sums = []
        for inputs in parts:
            per_replica = strategy.run(graph, args=[inputs])
            sums.append(float(strategy.reduce("SUM", per_replica, axis=None)))
        history.append(sum(sums) / len(sums))
    return history
