"""Proof that a training step over several replicas does what it does on one device.

Shows:  the same data and first weights, your step on one device and on REPLICAS, and the weights compared.
Run:    python equals_one_device.py    (exit status 1 when the weights differ)
Avoids: believing a falling loss. Float64 and SGD with momentum show a small fault at once; float32 hides it among
        rounding, and Adam hides a gradient that is n times too large, for it rescales what it gets.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers

REPLICAS = 4
GLOBAL_BATCH = 16
EPOCHS = 3
TOLERANCE = 1e-10  # float64 rounds at 1e-16; some steps of adding in another order stay far below this
SUM = tf.distribute.ReduceOp.SUM

# Both are needed: layers take their type from the policy. And both before the first layer is made.
keras.config.set_floatx("float64")
keras.config.set_dtype_policy("float64")


def make_data():  # your data here: a few batches are enough, one of them ragged, one smaller than REPLICAS
    rng = np.random.default_rng(0)
    return rng.normal(size=(35, 8)), rng.normal(size=(35, 3))  # batches of 16, 16 and 3


def make_model():  # your model; without dropout, and with BatchNormalization(synchronized=True) if any
    keras.utils.set_random_seed(0)
    return keras.Sequential([layers.Input((8,)), layers.Dense(16, "tanh"), layers.Dense(3)])


def make_step(strategy, model, optimizer, dataset):  # your step
    def replica_step(x, y):
        count = tf.cast(tf.shape(x)[0], x.dtype)
        global_count = tf.distribute.get_replica_context().all_reduce(SUM, count)
        with tf.GradientTape() as tape:
            errors = keras.losses.mean_squared_error(y, model(x, training=True))  # one value an example
            share = tf.reduce_sum(errors + sum(model.losses)) / global_count
        optimizer.apply(tape.gradient(share, model.trainable_variables), model.trainable_variables)
        return share

    @tf.function(input_signature=[dataset.element_spec])  # one graph for all sizes of batches
    def step(batch):
        return strategy.reduce(SUM, strategy.run(replica_step, args=batch), axis=None)

    return step


def make_strategy(n):
    """Take n GPUs; without as many, split the CPU into n, which is possible only before TensorFlow has worked."""
    if len(tf.config.list_physical_devices("GPU")) >= n:
        return tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(n)])
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * n)
    # On CPUs TensorFlow's default way of adding up breaks at the second strategy of a process; this one does not.
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(n)], tf.distribute.ReductionToOneDevice())


def main():
    ways = []
    for strategy in (make_strategy(REPLICAS), tf.distribute.get_strategy()):  # the second is plain one device
        with strategy.scope():
            model = make_model()  # seeded: the same first weights
            optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
            optimizer.build(model.trainable_variables)
        dataset = tf.data.Dataset.from_tensor_slices(make_data()).batch(GLOBAL_BATCH)
        dataset = strategy.experimental_distribute_dataset(dataset)
        ways.append((strategy, model, make_step(strategy, model, optimizer, dataset), dataset))
    (several, model, step, dataset), (_, one_model, one_step, one_dataset) = ways

    def furthest():
        pairs = zip(model.get_weights(), one_model.get_weights(), strict=True)
        return np.max([np.max(np.abs(a - b)) for a, b in pairs])  # NumPy's max: NaN stays NaN, and fails below

    print(f"one device and {several.num_replicas_in_sync} replicas; difference before the first step {furthest():.1e}")
    start, apart = one_model.get_weights(), 0.0
    for epoch in range(1, EPOCHS + 1):
        losses = np.array([(float(step(b)), float(one_step(c))) for b, c in zip(dataset, one_dataset, strict=True)])
        apart = np.max([apart, furthest(), *np.abs(losses[:, 0] - losses[:, 1])])  # a loss may be wrong alone
        print(f"epoch {epoch}: loss {losses[:, 0].mean():.6f} and {losses[:, 1].mean():.6f}, ", end="")
        print(f"largest weight difference {furthest():.1e}")
    moved = np.max([np.max(np.abs(a - b)) for a, b in zip(start, one_model.get_weights(), strict=True)])
    if not (apart < TOLERANCE < moved):  # weights that never moved would be equal, and prove nothing
        sys.exit(f"NOT EQUAL: {apart:.1e} is not below {TOLERANCE:.0e} (weights moved by {moved:.1e})")
    print(f"equal: below {TOLERANCE:.0e}, while the weights moved by up to {moved:.2f}")


if __name__ == "__main__":
    main()
