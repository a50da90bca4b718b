"""A custom training loop over several workers that takes the same steps as one device.

Shows:  MultiWorkerMirroredStrategy; a mean over all workers' examples; data shared out by hand; leaving together.
Run:    tfdistedu run --workers 2 multi_worker_custom_loop.py    (or python on each machine, with TF_CONFIG set there)
Avoids: a worker that trains alone without a word, waits without end, means of means when shares differ, and a worker
        that leaves while another still evaluates.
"""

import faulthandler
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers

GLOBAL_BATCH = 60  # examples in one step over all workers, as on one device; a multiple of their number
EPOCHS = 5
START_SECONDS, STEP_SECONDS = 120, 60  # how long to wait for workers that do not come, or do not answer
SUM = tf.distribute.ReduceOp.SUM


def make_data():  # your data here: features and integer labels; the same on every worker
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1285)  # 21 batches of 60, and one of 25
    x = rng.normal(size=(10, 20))[y] + rng.normal(size=(1285, 20))
    return x.astype("float32"), y


def make_strategy():
    """Join the other workers. TF_CONFIG is read here, once, and before TensorFlow has done anything else."""
    cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    workers = len(cluster.get("chief", [])) + len(cluster.get("worker", []))
    if workers < 2:  # TensorFlow would make a strategy of one worker, and say nothing
        sys.exit("TF_CONFIG names no other worker, so this one would train alone")
    # TensorFlow waits for ever for a worker that does not come. This ends the process instead, and shows where it was.
    faulthandler.dump_traceback_later(START_SECONDS, exit=True)
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=STEP_SECONDS)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    faulthandler.cancel_dump_traceback_later()
    return strategy


def wait_for_all(strategy):
    """Return when every worker has called this: a sum that needs them all."""
    strategy.reduce(SUM, strategy.experimental_distribute_values_from_function(lambda _: tf.constant(1.0)), axis=None)


def main():
    strategy = make_strategy()
    print(f"worker {strategy.cluster_resolver.task_id}: {strategy.num_replicas_in_sync} replicas keep step")
    if GLOBAL_BATCH % strategy.num_replicas_in_sync:
        sys.exit(f"make GLOBAL_BATCH a multiple of {strategy.num_replicas_in_sync}")
    with strategy.scope():
        keras.utils.set_random_seed(0)  # the same first weights as on one device
        model = keras.Sequential([layers.Input((20,)), layers.Dense(64, "relu"), layers.Dense(10)])
        optimizer = keras.optimizers.Adam(0.003)
        optimizer.build(model.trainable_variables)  # or its variables are made in the first step, which crashes
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")  # one value an example
    x, y = make_data()

    def share_of(context):  # worker w of n takes the examples w, w + n, w + 2n, ...
        data = tf.data.Dataset.from_tensor_slices((x, y))  # .shuffle(..., seed=1) here: one seed on all workers
        data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
        return data.batch(context.get_per_replica_batch_size(GLOBAL_BATCH))

    dataset = strategy.distribute_datasets_from_function(share_of)

    def replica_step(x, y):
        count = tf.cast(tf.shape(x)[0], tf.float32)
        # The last batch is shared 13 and 12, or 9, 8 and 8: divide by the examples of all, whatever this worker has.
        global_count = tf.distribute.get_replica_context().all_reduce(SUM, count)
        with tf.GradientTape() as tape:
            loss_sum = tf.reduce_sum(loss(y, model(x, training=True)) + sum(model.losses))
            share = loss_sum / global_count
        gradients = tape.gradient(share, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)  # adds the workers' gradients up by itself
        return loss_sum, count

    @tf.function(input_signature=[dataset.element_spec])
    def step(batch):
        loss_sum, count = strategy.run(replica_step, args=batch)
        return strategy.reduce(SUM, loss_sum, axis=None), strategy.reduce(SUM, count, axis=None)

    losses = []
    for epoch in range(1, EPOCHS + 1):
        total, examples = 0.0, 0.0
        for batch in dataset:  # a worker whose share ends earlier goes on with empty batches, of weight zero
            loss_sum, count = step(batch)
            total, examples = total + float(loss_sum), examples + float(count)
        losses.append(total / examples)
        print(f"epoch {epoch}: mean loss {losses[-1]:.6f} over {examples:.0f} examples", flush=True)
    # What only one worker does, saving say, comes here. Then all leave together.
    wait_for_all(strategy)
    if not losses[-1] < losses[0]:
        sys.exit("the loss did not fall: look at the learning rate and at the data")


if __name__ == "__main__":
    main()
