"""A custom training loop over several replicas that takes the same steps as one device.

Shows:  MirroredStrategy; model, optimizer and loss in the scope; a distributed dataset; a step under tf.function.
Run:    python mirrored_custom_loop.py    (uses the GPUs there are; without one, splits the CPU into REPLICAS)
Avoids: replicas that all train on the same batch, an optimizer that crashes in its first step, and losses and
        gradients that are wrong by the number of replicas, or in a last batch that does not divide evenly.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers

REPLICAS = 4
GLOBAL_BATCH = 64  # examples in one step over all replicas, as on one device
EPOCHS = 5
SUM = tf.distribute.ReduceOp.SUM


def make_data():  # your data here: features and integer labels
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1285)  # 20 batches of 64, and one of 5: on 4 replicas 2, 2, 1 and none
    x = rng.normal(size=(10, 20))[y] + rng.normal(size=(1285, 20))
    return x.astype("float32"), y


def make_model():
    keras.utils.set_random_seed(0)
    return keras.Sequential([layers.Input((20,)), layers.Dense(64, "relu"), layers.Dense(10)])


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
    devices = [name.split("device:")[1] for name in strategy.extended.worker_devices]
    print(f"{len(devices)} replicas on {', '.join(devices)}")
    with strategy.scope():
        model = make_model()
        optimizer = keras.optimizers.Adam(0.003)
        optimizer.build(model.trainable_variables)  # or its variables are made in the first step, which crashes
        # No reduction: one value an example. Any mean taken here would be over one replica's share only.
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    # For your data: .shuffle(10_000) before .batch. Here the order is fixed, so any REPLICAS gives the same numbers.
    dataset = tf.data.Dataset.from_tensor_slices(make_data()).batch(GLOBAL_BATCH)
    dataset = strategy.experimental_distribute_dataset(dataset)  # or each replica would get every whole batch

    def replica_step(x, y):
        count = tf.cast(tf.shape(x)[0], tf.float32)
        global_count = tf.distribute.get_replica_context().all_reduce(SUM, count)
        with tf.GradientTape() as tape:
            # model.losses are the L2 terms, if any: one for each example, so one in the mean.
            loss_sum = tf.reduce_sum(loss(y, model(x, training=True)) + sum(model.losses))
            # Divided by the examples of all replicas: gradients are added up, so this adds up to the mean.
            share = loss_sum / global_count
        gradients = tape.gradient(share, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)  # adds the replicas' gradients up by itself
        return loss_sum, count

    # One graph for all sizes of batches, in which no replica takes its first size for a constant.
    @tf.function(input_signature=[dataset.element_spec])
    def step(batch):
        loss_sum, count = strategy.run(replica_step, args=batch)
        return strategy.reduce(SUM, loss_sum, axis=None), strategy.reduce(SUM, count, axis=None)

    losses = []
    for epoch in range(1, EPOCHS + 1):
        total, examples = 0.0, 0.0
        for batch in dataset:
            loss_sum, count = step(batch)
            total, examples = total + float(loss_sum), examples + float(count)
        losses.append(total / examples)  # a mean over examples: a mean over batches would overrate the short one
        print(f"epoch {epoch}: mean loss {losses[-1]:.6f} over {examples:.0f} examples")
    if not losses[-1] < losses[0]:
        sys.exit("the loss did not fall: look at the learning rate and at the data")


if __name__ == "__main__":
    main()
