"""strategy.run splits the batch between the replicas."""

from collections.abc import Callable
from typing import Any

from tfdistedu.devices import tf

ID = "never_distributed"
EXERCISE = "train"
BELIEVES = "strategy.run splits the batch between the replicas."
TRUE = "It hands every replica what it is given; only a distributed dataset is split."
QUESTION = "What does each replica get when an undistributed batch is given to strategy.run?"
CAUGHT_BY = "test_two_replicas_share_the_examples"
SEEN = "ours"


def train(
    strategy: tf.distribute.Strategy,
    model: Any,
    optimizer: Any,
    loss: Callable[[Any, Any], Any],
    dataset: tf.data.Dataset,
    epochs: int = 1,
) -> list[float]:
    with strategy.scope():
        optimizer.build(model.trainable_variables)

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


def twin(strategy, model, optimizer, loss, dataset, epochs=1):
    with strategy.scope():
        optimizer.build(model.trainable_variables)

    def one_step(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            value = tf.math.reduce_mean(loss(y, model(x, training=True)))
        weights = model.trainable_weights
        optimizer.apply(tape.gradient(value, weights), weights)
        return value

    graph, history = tf.function(one_step), []
    for _ in range(epochs):
        sums = []
        for inputs in dataset:
            per_replica = strategy.run(graph, args=[inputs])
            sums.append(float(strategy.reduce("SUM", per_replica, axis=None)))
        history.append(sum(sums) / len(sums))
    return history
