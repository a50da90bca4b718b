"""Batch normalisation, dropout and metrics over several replicas: the three kinds of state beside the weights.

Shows:  moving statistics that are the same on all replicas, another dropout mask on each, metrics over all examples.
Run:    python batchnorm_dropout_metrics.py    (uses the GPUs there are; without one, splits the CPU into REPLICAS)
Avoids: BatchNormalization() that keeps other statistics on each replica, and makes NaN on one without examples;
        Dropout() that draws the same mask on all; metrics that were updated outside of strategy.run.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers

REPLICAS = 4
GLOBAL_BATCH = 64  # examples in one step over all replicas
EPOCHS = 5


def make_data():  # your data here: features, centred, and integer labels
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 645)  # 10 batches of 64, and one of 5: on 4 replicas 2, 2, 1 and none
    x = rng.normal(size=(10, 20))[y] + rng.normal(size=(645, 20))
    return x.astype("float32"), y


class ReplicaDropout(layers.Layer):
    """Dropout whose mask depends on the replica. Keras's own has the same seed, so the same mask, on all of them."""

    def __init__(self, rate, seed):
        super().__init__()
        self.rate, self.seeds = rate, keras.random.SeedGenerator(seed)

    def call(self, x, training=False):
        if not training:
            return x
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.cast(self.seeds.next(), tf.int32) + tf.stack([replica * 1_000_003, 0])
        return tf.nn.experimental.stateless_dropout(x, self.rate, seed=seed)


def make_strategy(n):
    """Take up to n GPUs; without any, split the CPU into n, which is possible only before TensorFlow has worked."""
    if gpus := len(tf.config.list_physical_devices("GPU")):
        return tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(min(n, gpus))])
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * n)
    # On CPUs TensorFlow's default way of adding up breaks at the second strategy of a process; this one does not.
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(n)], tf.distribute.ReductionToOneDevice())


def main():
    strategy = make_strategy(REPLICAS)
    with strategy.scope():
        keras.utils.set_random_seed(0)
        normalise = layers.BatchNormalization(synchronized=True)  # by mean and variance of the global batch
        hidden = [layers.Dense(64, use_bias=False), normalise, layers.ReLU(), ReplicaDropout(0.2, seed=1)]
        model = keras.Sequential([layers.Input((20,)), *hidden, layers.Dense(10)])
        optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
        optimizer.build(model.trainable_variables)
        mean_loss, accuracy = keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()

    dataset = tf.data.Dataset.from_tensor_slices(make_data()).batch(GLOBAL_BATCH)
    dataset = strategy.experimental_distribute_dataset(dataset)

    def replica_step(x, y):
        global_count = tf.distribute.get_replica_context().all_reduce("SUM", tf.cast(tf.shape(x)[0], tf.float32))
        with tf.GradientTape() as tape:
            predictions = model(x, training=True)
            values = keras.losses.sparse_categorical_crossentropy(y, predictions, from_logits=True)
            share = tf.reduce_sum(values + sum(model.losses)) / global_count
        optimizer.apply(tape.gradient(share, model.trainable_variables), model.trainable_variables)
        mean_loss.update_state(values)  # inside: each replica adds its examples; result() outside adds them all up
        accuracy.update_state(y, predictions)

    # Sizes stay open: a replica that took its own for a constant would build another graph, and not meet the others.
    step = tf.function(lambda batch: strategy.run(replica_step, args=batch), input_signature=[dataset.element_spec])
    losses = []
    for epoch in range(1, EPOCHS + 1):
        mean_loss.reset_state()
        accuracy.reset_state()
        for batch in dataset:
            step(batch)
        losses.append(float(mean_loss.result()))
        print(f"epoch {epoch}: mean loss {losses[-1]:.6f}, accuracy {float(accuracy.result()):.4f}")

    apart = np.ptp(strategy.experimental_local_results(normalise.moving_variance.value), axis=0).max()
    masks = strategy.run(tf.function(lambda: hidden[-1](tf.ones((1, 64)), training=True)))
    different = len({mask.numpy().tobytes() for mask in strategy.experimental_local_results(masks)})
    print(f"batch normalisation: copies differ by {apart:.1e}; dropout: {different} different masks")
    if not (apart < 1e-6 and different == strategy.num_replicas_in_sync and losses[-1] < losses[0]):
        sys.exit("not right: the replicas' statistics differ, masks are the same, or the loss did not fall")


if __name__ == "__main__":
    main()
