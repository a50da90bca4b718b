"""The sibling of the exercise: an exact evaluation on all replicas, to be shown."""

from tfdistedu.devices import tf

SUM = tf.distribute.ReduceOp.SUM


# --8<-- [start:evaluate]
def mean_loss(strategy, model, loss, dataset):
    """Return the mean loss over all examples of a dataset."""

    def on_replica(x, y):
        values = loss(y, model(x, training=False))
        return tf.reduce_sum(values), tf.size(values)

    @tf.function(reduce_retracing=True)
    def step(batch):
        sums, counts = strategy.run(on_replica, args=batch)
        return strategy.reduce(SUM, sums, axis=None), strategy.reduce(SUM, counts, axis=None)

    total, examples = 0.0, 0
    for batch in strategy.experimental_distribute_dataset(dataset):
        batch_sum, batch_count = step(batch)
        total, examples = total + float(batch_sum), examples + int(batch_count)
    return total / examples


# --8<-- [end:evaluate]
