"""What does the custom loop that most tutorials print really do?

**Wrong on purpose.** The loop below stands, nearly word for word, in many tutorials and answers. It is kept here to be
measured beside the right one (`tfdistedu.synchronous.loop`), and must not be copied once more.

    for batch in dataset:                          whole batch
        strategy.run(step, batch)        --> replica 0: whole batch   replica 1: whole batch   ...   all the same
        total += strategy.reduce(SUM, losses)      n losses of the same batch, added up

Its faults, each of which a test in tests/traps shows:

1. The dataset is never distributed: every replica trains on the same examples. n replicas do the work of one, n times.
2. A loss that is already a mean is added up n times: the gradient and the printed loss are n times too large. Only a
   Keras loss object with its default reduction escapes: it divides by n on its own when it is called in a replica.
3. An epoch's loss is a mean over batches, not over examples: a short last batch weighs as much as a full one.
4. Once the dataset *is* distributed (the usual repair of 1), batches that do not divide evenly train wrong: the update
   is a mean of the replicas' means. Of a replica without examples a plain mean is NaN, and a loss object gives an
   empty list, with which the reduction fails.
5. As printed, with Adam that is not built in the scope, it does not survive its first step. Here it is built.

Cost: n times the work of one device. Left out: everything that would make it right.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

REASON = "never distributes its data, and adds a mean loss up over the replicas: gradients n times too large"


def mean_crossentropy(y: Any, logits: Any) -> tf.Tensor:
    """Compute the loss as most people write it by hand: one scalar, the mean over the examples that it was given.

    On one device it is right. In the loop below each of n replicas brings such a mean, and they are added up.

    Args:
        y: Integer labels, shape [batch].
        logits: Predictions, shape [batch, classes].

    Returns:
        A scalar; NaN for an empty batch.

    """
    return tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True))


def train_widely_copied(
    strategy: tf.distribute.Strategy,
    model: Any,
    optimizer: Any,
    loss: Any,
    dataset: tf.data.Dataset,
    epochs: int = 1,
    distribute: bool = False,
) -> list[float]:
    """Train as the widely copied loop does: wrong on purpose, see the top of this module.

    With `mean_crossentropy` the result is n times too large a gradient. With a Keras loss object the weights are those
    of one device, and n replicas did that one device's work n times over.

    Args:
        strategy: Any strategy; on one replica the loop is right but for fault 3.
        model: A Keras model made in the strategy's scope.
        optimizer: A Keras optimizer made there; it is built here, or the loop would crash before it could be wrong.
        loss: A function `(y, predictions)` or a Keras loss object.
        dataset: Batches `(x, y)`, not distributed.
        epochs: Passes over the data.
        distribute: Whether to distribute the dataset, which is the usual (half) repair.

    Returns:
        What the loop prints: one "mean loss" an epoch.

    """
    with strategy.scope():
        optimizer.build(model.trainable_variables)
    if distribute:
        dataset = strategy.experimental_distribute_dataset(dataset)

    @tf.function(reduce_retracing=True)
    def distributed_train_step(inputs):
        features, labels = inputs
        with tf.GradientTape() as tape:
            value = loss(labels, model(features, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return value

    losses = []
    for _ in range(epochs):
        total_loss, batches = 0.0, 0
        for inputs in dataset:  # fault 1: each replica gets all of `inputs`
            per_replica_loss = strategy.run(distributed_train_step, args=(inputs,))
            # Fault 2: n means, added up.
            total_loss += float(strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_loss, axis=None))
            batches += 1
        losses.append(total_loss / batches)  # fault 3: by batches, not by examples
    return losses
