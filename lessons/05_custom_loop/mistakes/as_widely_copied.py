"""strategy.run makes any step distributed, and the rest takes care of itself."""

from collections.abc import Callable
from typing import Any

from tfdistedu.devices import tf

ID = "as_widely_copied"
EXERCISE = "train"
BELIEVES = "strategy.run makes any step distributed, and the rest takes care of itself."
TRUE = "The dataset is not distributed, the loss is each replica's own mean, the optimizer is not built in the scope."
QUESTION = "Which line gives each replica another part of the batch? And where are the optimizer's variables made?"
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

    # --8<-- [start:copied]
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
    # --8<-- [end:copied]
    return losses


def twin(strategy, model, optimizer, loss, dataset, epochs=1):
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
