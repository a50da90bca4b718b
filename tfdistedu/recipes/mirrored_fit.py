"""Keras compile and fit over several replicas.

Shows:  MirroredStrategy; model and compile in the scope; fit on a dataset; an evaluation that counts each example once.
Run:    python mirrored_fit.py    (uses the GPUs there are; without one, splits the CPU into REPLICAS)
Avoids: variables made outside the scope, one short batch an epoch in which some examples weigh more than others, and
        clipping (clipnorm and its kin), which Keras 3 does on each replica before it adds up: use a custom loop.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers

REPLICAS = 4
GLOBAL_BATCH = 64  # examples in one step over all replicas, as on one device; a multiple of REPLICAS
EPOCHS = 5


def make_data():  # your data here: features and integer labels, to train and to test
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1613)
    x = (rng.normal(size=(10, 20))[y] + rng.normal(size=(1613, 20))).astype("float32")
    return (x[:1285], y[:1285]), (x[1285:], y[1285:])


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
    n = strategy.num_replicas_in_sync
    devices = [name.split("device:")[1] for name in strategy.extended.worker_devices]
    print(f"{len(devices)} replicas on {', '.join(devices)}")
    if GLOBAL_BATCH % n:
        sys.exit(f"fit is exact only when each replica gets as much: make GLOBAL_BATCH a multiple of {n}")
    with strategy.scope():
        model = make_model()
        model.compile(
            optimizer=keras.optimizers.Adam(0.003),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),  # fit divides it by the replicas
            metrics=["accuracy"],
        )

    train, test = make_data()
    # fit distributes a dataset by itself. It takes the mean of the replicas' means, which is the mean over the examples
    # only when all replicas have as many: so the short rest of an epoch is left out. .shuffle(...) before .batch, with
    # another order in each epoch, then leaves out other examples each time.
    dataset = tf.data.Dataset.from_tensor_slices(train).batch(GLOBAL_BATCH, drop_remainder=True)
    show = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: print(
            f"epoch {epoch + 1}: mean loss {logs['loss']:.6f}, accuracy {logs['accuracy']:.4f}"
        )
    )
    history = model.fit(dataset, epochs=EPOCHS, shuffle=False, callbacks=[show], verbose=0).history["loss"]

    # Evaluation needs no dropping: each replica adds to the metric's sums, and they are added up at the end.
    x, y = test
    accuracy = model.evaluate(tf.data.Dataset.from_tensor_slices(test).batch(GLOBAL_BATCH), verbose=0)[1]
    by_hand = np.mean(model.predict(x, verbose=0).argmax(axis=1) == y)
    print(f"test accuracy {accuracy:.4f}, counted by hand {by_hand:.4f}, over {len(y)} examples")
    # In batches of another size one example on the edge between two classes may fall to the other side.
    if abs(accuracy - by_hand) > 1.5 / len(y) or not history[-1] < history[0]:
        sys.exit("not right: the two accuracies differ, or the loss did not fall")


if __name__ == "__main__":
    main()
