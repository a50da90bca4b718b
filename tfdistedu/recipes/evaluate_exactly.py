"""An evaluation over several replicas that counts each example once, whatever the size of the validation set.

Shows:  metrics made in the scope, updated in strategy.run, read outside; held against NumPy on the whole set.
Run:    python evaluate_exactly.py    (uses the GPUs there are; without one, splits the CPU into REPLICAS)
Avoids: the mean of batches' or replicas' means, in which examples of a short batch weigh more; NaN from a replica
        without examples; a dataset that was not distributed, so that each example is counted on every replica.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers

REPLICAS = 4
GLOBAL_BATCH = 64


def make_data():  # your data here: the validation set
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 197)  # 3 batches of 64, and one of 5: on 4 replicas 2, 2, 1 and none
    x = rng.normal(size=(10, 20))[y] + rng.normal(size=(197, 20))
    return x.astype("float32"), y


def make_model():  # your trained model; this one guesses, which is enough to compare ways of counting
    keras.utils.set_random_seed(0)
    return keras.Sequential([layers.Input((20,)), layers.Dense(10)])


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
        model = make_model()  # load weights here too, in the scope
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        mean_loss, accuracy = keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()
        examples = keras.metrics.Sum()

    x, y = make_data()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(GLOBAL_BATCH)  # no drop_remainder: all examples count
    dataset = strategy.experimental_distribute_dataset(dataset)

    def replica_evaluate(x, y):
        predictions = model(x, training=False)
        values = loss(y, predictions)
        # A metric keeps a sum and a count on each replica. Nothing is divided before result() adds them all up.
        mean_loss.update_state(values)
        accuracy.update_state(y, predictions)
        examples.update_state(tf.ones_like(values))
        correct = tf.cast(tf.argmax(predictions, axis=1) == tf.cast(y, tf.int64), tf.float32)
        return tf.math.divide_no_nan(tf.reduce_sum(correct), tf.cast(tf.size(y), tf.float32))

    @tf.function(input_signature=[dataset.element_spec])  # one graph for all sizes of batches
    def evaluate(batch):
        own_accuracy = strategy.run(replica_evaluate, args=batch)
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, own_accuracy, axis=None)  # wrong, to compare

    means = [float(evaluate(batch)) for batch in dataset]

    logits = model(x, training=False).numpy()  # the whole set at once, outside of the strategy's replicas
    by_hand = float(np.mean(logits.argmax(axis=1) == y))
    loss_by_hand = float(np.mean(loss(y, logits)))
    print(f"examples counted      {float(examples.result()):.0f} of {len(y)}")
    print(f"accuracy              {float(accuracy.result()):.6f}, by hand {by_hand:.6f}")
    print(f"mean loss             {float(mean_loss.result()):.6f}, by hand {loss_by_hand:.6f}")
    print(f"mean of means (wrong) {np.mean(means):.6f}")
    wrong = max(abs(float(accuracy.result()) - by_hand), abs(float(mean_loss.result()) - loss_by_hand))
    if float(examples.result()) != len(y) or not wrong < 1e-4:  # float32, summed in another order
        sys.exit(f"not exact: off by {wrong:.1e}")


if __name__ == "__main__":
    main()
