"""How often does what run? python count_runs.py REPLICAS EXAMPLES GLOBAL_BATCH EPOCHS

The loop is the repaired one, on a tiny model; each part counts itself.
"""

import sys
from collections import Counter

import numpy as np

from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus
from tfdistedu.quiet import import_tensorflow

import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

SUM = tf.distribute.ReduceOp.SUM


def count_runs(n_replicas: int, n_examples: int, global_batch: int, epochs: int) -> dict[str, int]:
    """Train, and return how often each part ran."""
    virtual_cpus(4)
    counts = Counter()
    strategy = mirrored_strategy(n_replicas)
    data = np.ones((n_examples, 3)), np.ones((n_examples, 1))
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(global_batch)
    with strategy.scope():
        model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
        optimizer = keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)

    def ran(what):
        counts[what] += 1

    # --8<-- [start:loop]
    def replica_step(x, y):
        counts["replica_step_in_python"] += 1
        tf.numpy_function(lambda: ran("replica_step_in_the_graph"), [], [])
        count = tf.shape(x)[0]
        global_count = tf.distribute.get_replica_context().all_reduce(SUM, count)
        with tf.GradientTape() as tape:
            errors = tf.square(tf.cast(y, tf.float32) - model(x))
            share = tf.reduce_sum(errors) / tf.cast(global_count, tf.float32)
        gradients = tape.gradient(share, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return share

    @tf.function(reduce_retracing=True)
    def step(batch):
        return strategy.reduce(SUM, strategy.run(replica_step, args=batch), axis=None)

    for _ in range(epochs):
        for batch in strategy.experimental_distribute_dataset(dataset):
            counts["batches"] += 1
            step(batch)
    # --8<-- [end:loop]
    counts["optimizer_iterations"] = int(optimizer.iterations.numpy())
    return dict(sorted(counts.items()))


if __name__ == "__main__":
    for part, number in count_runs(*map(int, sys.argv[1:])).items():
        print(f"{part}: {number}")
