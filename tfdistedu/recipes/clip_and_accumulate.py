"""Gradient clipping and accumulation over several replicas: k micro-batches count as one large batch.

Shows:  reduce, then clip, then apply; sums that each replica keeps for itself; one update for ACCUMULATE micro-batches.
Run:    python clip_and_accumulate.py    (uses the GPUs there are; without one, splits the CPU into REPLICAS)
Avoids: Keras 3's clipnorm, which clips each replica's gradient before they are added up, so that the limit means
        something else for each number of replicas; and gradient_accumulation_steps, which crashes in a tf.function.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers

REPLICAS = 4
MICRO_BATCH = 16  # examples over all replicas that fit into memory at once
ACCUMULATE = 4  # micro-batches in one update: it is the update of a global batch of 64
CLIP = 1.0  # the largest global norm of a gradient, as on one device
EPOCHS = 5


def make_data():  # your data here: features and targets
    rng = np.random.default_rng(0)
    x = rng.normal(size=(646, 8)).astype("float32")  # 40 micro-batches of 16, and one of 6
    return x, np.tanh(x @ rng.normal(size=(8, 1))).astype("float32")


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
        model = keras.Sequential([layers.Input((8,)), layers.Dense(32, "tanh"), layers.Dense(1)])
        weights = model.trainable_variables
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9)  # no clipnorm here: clipping is done below
        optimizer.build(weights)
        # ON_READ: each replica adds to its own copy. SUM: who reads from outside gets the sum of the copies.
        own = {"synchronization": tf.VariableSynchronization.ON_READ, "aggregation": tf.VariableAggregation.SUM}
        sums = [tf.Variable(tf.zeros(w.shape, w.dtype), trainable=False, **own) for w in weights]
        loss_sum, count = (tf.Variable(0.0, trainable=False, **own) for _ in range(2))

    dataset = tf.data.Dataset.from_tensor_slices(make_data()).batch(MICRO_BATCH)
    dataset = strategy.experimental_distribute_dataset(dataset)

    def replica_accumulate(x, y):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(keras.losses.mean_squared_error(y, model(x, training=True)) + sum(model.losses))
        # Sums, not means: what to divide by is known only when all micro-batches were seen.
        for total, gradient in zip(sums, tape.gradient(value, weights, unconnected_gradients="zero"), strict=True):
            total.assign_add(tf.convert_to_tensor(gradient))  # an embedding's sparse gradient becomes dense here
        loss_sum.assign_add(value)
        count.assign_add(tf.cast(tf.shape(x)[0], tf.float32))

    @tf.function(input_signature=[dataset.element_spec])  # one graph for all sizes of batches
    def accumulate(batch):
        strategy.run(replica_accumulate, args=batch)

    @tf.function
    def update():  # not given to strategy.run: this is cross-replica context, with one value and not n
        examples, loss = count.read_value(), loss_sum.read_value()
        gradients = [total.read_value() / examples for total in sums]  # reduce
        gradients, norm = tf.clip_by_global_norm(gradients, CLIP)  # clip what one device would clip
        optimizer.apply(gradients, weights)  # apply: on all replicas the same
        for total in (*sums, loss_sum, count):
            total.assign(tf.zeros(total.shape))
        return loss, examples, norm

    means = []
    for epoch in range(1, EPOCHS + 1):
        done = []
        for number, batch in enumerate(dataset, start=1):
            accumulate(batch)
            if number % ACCUMULATE == 0:  # decided here, in Python: a branch of a graph may not reduce
                done.append(update())
        if number % ACCUMULATE:
            done.append(update())  # the rest of the epoch: divided by its own examples, so as right as the others
        loss, examples, norms = np.transpose(done)
        means.append(loss.sum() / examples.sum())
        print(f"epoch {epoch}: mean loss {means[-1]:.6f} over {examples.sum():.0f} examples, ", end="")
        print(f"{len(done)} updates, {(norms > CLIP).sum()} clipped, largest norm {norms.max():.3f}")
    if not means[-1] < means[0]:
        sys.exit("the loss did not fall: look at the learning rate and at the data")


if __name__ == "__main__":
    main()
