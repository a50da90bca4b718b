"""Each replica takes the mean of its own examples, as on one device."""

from collections.abc import Callable
from typing import Any

from tfdistedu.devices import tf

ID = "mean_on_each_replica"
EXERCISE = "train"
BELIEVES = "Each replica takes the mean of its own examples, as on one device."
TRUE = "The optimizer adds the replicas' gradients up, so n means make it n times too large."
QUESTION = "The optimizer adds gradients up over n replicas. What is the sum of n means?"
CAUGHT_BY = "test_two_replicas_take_the_step_of_one_device"
SEEN = "ours"
SUM = tf.distribute.ReduceOp.SUM


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
    variables = model.trainable_variables
    batches = strategy.experimental_distribute_dataset(dataset)

    def replica_step(x, y):
        count = tf.shape(x)[0]
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(loss(y, model(x, training=True)))
            share = total / tf.cast(count, total.dtype)
        gradients = tape.gradient(share, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return total, count

    @tf.function(reduce_retracing=True)
    def step(batch):
        totals, counts = strategy.run(replica_step, args=batch)
        return strategy.reduce(SUM, totals, axis=None), strategy.reduce(SUM, counts, axis=None)

    losses = []
    for _ in range(epochs):
        results = [step(batch) for batch in batches]
        losses.append(sum(float(t) for t, _ in results) / sum(int(c) for _, c in results))
    return losses


def twin(strategy, model, optimizer, loss, dataset, epochs=1):
    weights = model.trainable_variables
    with strategy.scope():
        optimizer.build(weights)

    def on_replica(batch):
        x, y = batch
        size = tf.size(x[:, 0])
        with tf.GradientTape() as tape:
            values = loss(y, model(x, training=True))
            target = tf.reduce_mean(values)
        gradients = tape.gradient(target, weights)
        optimizer.apply(gradients, weights)
        return tf.reduce_sum(values), size

    graph = tf.function(lambda batch: strategy.run(on_replica, args=(batch,)), reduce_retracing=True)
    history = []
    while len(history) < epochs:
        weighed, examples, means = 0.0, 0, []
        for batch in iter(strategy.experimental_distribute_dataset(dataset)):
            values, sizes = graph(batch)
            here = float(strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None))
            number = int(strategy.reduce(tf.distribute.ReduceOp.SUM, sizes, axis=None))
            weighed, examples, means = weighed + here, examples + number, [*means, here / number]
        history.append(weighed / examples)
    return history
