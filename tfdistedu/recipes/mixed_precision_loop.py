"""A float16 training loop over several replicas that skips a step on all of them when any one overflows.

Shows:  the loss scaled up; gradients added up, then looked at; one decision: apply, or skip and halve the scale.
Run:    python mixed_precision_loop.py    (uses the GPUs there are; without one, splits the CPU into REPLICAS)
Avoids: keras.optimizers.LossScaleOptimizer in strategy.run, which asks only replica 0 whether its gradients are
        finite: infinity from another replica goes into the weights, and the scale stays.
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
FIRST_SCALE = 2.0**24  # too large on purpose, to see it fall; 2**15 is usual
GROW_AFTER = 2000  # good steps before the scale is doubled
SUM = tf.distribute.ReduceOp.SUM
keras.config.set_dtype_policy("mixed_float16")  # computes in float16, keeps weights in float32


def make_data():  # your data here: features and integer labels
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1285)  # 20 batches of 64, and one of 5: on 4 replicas 2, 2, 1 and none
    x = rng.normal(size=(10, 20))[y] + rng.normal(size=(1285, 20))
    return x.astype("float32"), y


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
        logits = layers.Dense(10, dtype="float32")  # the last layer, and with it the loss, does not lose digits
        model = keras.Sequential([layers.Input((20,)), layers.Dense(64, "relu"), logits])
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(model.trainable_variables)
        scale, good_steps = tf.Variable(FIRST_SCALE, trainable=False), tf.Variable(0, trainable=False)

    dataset = tf.data.Dataset.from_tensor_slices(make_data()).batch(GLOBAL_BATCH)
    dataset = strategy.experimental_distribute_dataset(dataset)

    def replica_gradients(x, y):
        count = tf.cast(tf.shape(x)[0], tf.float32)
        global_count = tf.distribute.get_replica_context().all_reduce(SUM, count)
        with tf.GradientTape() as tape:
            values = keras.losses.sparse_categorical_crossentropy(y, model(x, training=True), from_logits=True)
            loss_sum = tf.reduce_sum(values + sum(model.losses))
            scaled = loss_sum / global_count * scale  # so that small gradients do not vanish in float16
        gradients = tape.gradient(scaled, model.trainable_variables, unconnected_gradients="zero")
        finite = tf.cast(tf.math.is_finite(tf.linalg.global_norm(gradients)), tf.float32)  # only to tell of it
        return gradients, finite, loss_sum, count

    @tf.function(input_signature=[dataset.element_spec])  # one graph for all sizes of batches
    def step(batch):
        gradients, finite, loss_sum, count = strategy.run(replica_gradients, args=batch)
        # Reduce first. Infinity on one replica plus anything on the others is not finite: one answer for all.
        gradients = [strategy.reduce(SUM, gradient, axis=None) for gradient in gradients]
        if tf.math.is_finite(tf.linalg.global_norm(gradients)):
            optimizer.apply([gradient / scale for gradient in gradients], model.trainable_variables)
            good_steps.assign_add(1)
            scale.assign(tf.where(good_steps % GROW_AFTER == 0, 2.0 * scale, scale))
        else:  # no apply at all: with gradients of zero, momentum would still move the weights
            good_steps.assign(0)
            scale.assign(scale / 2.0)
        return [strategy.reduce(SUM, value, axis=None) for value in (finite, loss_sum, count)]

    n, means = strategy.num_replicas_in_sync, []
    for epoch in range(1, EPOCHS + 1):
        finite, loss_sum, count = np.transpose([[float(value) for value in step(batch)] for batch in dataset])
        means.append(loss_sum.sum() / count.sum())
        print(f"epoch {epoch}: mean loss {means[-1]:.6f}, scale 2**{np.log2(scale.numpy()):.0f}, skipped ", end="")
        some = (finite > 0) & (finite < n)
        print(f"{(finite < n).sum()} of {len(count)} steps, {some.sum()} of them for some replicas only")
    groups = [[v.numpy() for v in strategy.experimental_local_results(w.value)] for w in model.weights]
    same = all(np.array_equal(copy, group[0]) and np.isfinite(copy).all() for group in groups for copy in group)
    print(f"weights finite and the same on {n} replicas: {same}")
    if not (same and means[-1] < means[0]):
        sys.exit("not right: the replicas' weights differ or are not finite, or the loss did not fall")


if __name__ == "__main__":
    main()
