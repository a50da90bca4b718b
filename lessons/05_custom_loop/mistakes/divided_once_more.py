"""The loss has to be divided by the number of replicas as well."""

from collections.abc import Callable
from typing import Any

from tfdistedu.devices import tf

ID = "divided_once_more"
EXERCISE = "train"
BELIEVES = "The loss has to be divided by the number of replicas as well."
TRUE = "It is divided by the global count already; the replicas are in that number."
QUESTION = "Add up the shares of all replicas by hand: do you get one device's mean?"
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
        context = tf.distribute.get_replica_context()
        global_count = context.all_reduce(SUM, count) if strategy.num_replicas_in_sync > 1 else count
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(loss(y, model(x, training=True)))
            share = total / tf.cast(global_count, total.dtype) / strategy.num_replicas_in_sync
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
    n = strategy.num_replicas_in_sync
    weights = model.trainable_variables
    with strategy.scope():
        optimizer.build(weights)

    def on_replica(batch):
        x, y = batch
        size = tf.size(x[:, 0])
        whole = size
        if n > 1:
            whole = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, size)
        with tf.GradientTape() as tape:
            values = loss(y, model(x, training=True))
            target = tf.reduce_sum(values) / tf.cast(n * whole, values.dtype)
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
