"""Training on several workers that ends with the same weights, whether a worker was killed in the middle or not.

Shows:  checkpoints that hold weights, optimizer and position in the data; all save, the chief's is kept; exact resume.
Run:    tfdistedu run --workers 2 --restarts 1 resume_after_a_crash.py --crash-at 9    (without --crash-at: no crash)
Avoids: a resume that starts the optimizer anew, does batches twice or leaves some out, restores half and says nothing;
        workers that write into one file; a chief that saves alone and waits for ever.
"""

import argparse
import faulthandler
import hashlib
import json
import os
import shutil
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import keras
import numpy as np
import tensorflow as tf
from keras import layers

GLOBAL_BATCH = 60  # examples in one step over all workers; a multiple of their number, the same in each run
EPOCHS = 3
SAVE_EVERY = 4  # steps
SEED = 7
START_SECONDS, STEP_SECONDS = 120, 20  # how long to wait for workers that do not come, or do not answer
SUM = tf.distribute.ReduceOp.SUM


def make_data():  # your data here; the same on every worker
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 385)  # 6 batches of 60, and one of 25
    x = rng.normal(size=(10, 20))[y] + rng.normal(size=(385, 20))
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
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--folder", default="checkpoints", help="one folder that all workers see")
    arguments.add_argument("--crash-at", type=int, help="worker 1 is killed after so many steps, in the first run")
    options = arguments.parse_args()
    strategy = make_strategy()
    if GLOBAL_BATCH % strategy.num_replicas_in_sync:
        sys.exit(f"make GLOBAL_BATCH a multiple of {strategy.num_replicas_in_sync}")
    rank = strategy.cluster_resolver.task_id
    is_chief = strategy.cluster_resolver.task_type == "chief" or (
        rank == 0 and "chief" not in strategy.cluster_resolver.cluster_spec().jobs
    )
    with strategy.scope():
        keras.utils.set_random_seed(0)
        model = keras.Sequential([layers.Input((20,)), layers.Dense(32, "relu"), layers.Dense(10)])
        optimizer = keras.optimizers.Adam(0.003)
        optimizer.build(model.trainable_variables)  # before the restore: variables made later would start at zero
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        position = tf.Variable([0, 0], dtype=tf.int64)  # epochs that are complete, and steps of the next one

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, position=position)
    # Every worker saves, for some variables are read from all of them. Only the chief's files are kept.
    own = options.folder if is_chief else f"{options.folder}-of-worker-{rank}"
    manager = tf.train.CheckpointManager(checkpoint, own, max_to_keep=2)

    def save():
        manager.save()
        if not is_chief:
            shutil.rmtree(own, ignore_errors=True)
        # A barrier: nobody trains on before the chief's files are written.
        wait_for_all(strategy)

    newest = tf.train.latest_checkpoint(options.folder)
    if newest:
        checkpoint.restore(newest).assert_consumed()  # all of it, or an error
    resumed = bool(newest)
    print(f"worker {rank}: " + (f"resumed from {newest}, position {position.numpy().tolist()}" if resumed else "new"))
    x, y = make_data()

    def share_of_epoch(epoch, done):
        order = np.random.default_rng([SEED, epoch]).permutation(len(x))  # only seed and epoch decide

        def share_of(context):
            data = tf.data.Dataset.from_tensor_slices((x[order], y[order])).skip(done * GLOBAL_BATCH)
            data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
            return data.batch(context.get_per_replica_batch_size(GLOBAL_BATCH))

        return strategy.distribute_datasets_from_function(share_of)

    def replica_step(x, y):
        count = tf.cast(tf.shape(x)[0], tf.float32)
        global_count = tf.distribute.get_replica_context().all_reduce(SUM, count)
        with tf.GradientTape() as tape:
            share = tf.reduce_sum(loss(y, model(x, training=True)) + sum(model.losses)) / global_count
        optimizer.apply(tape.gradient(share, model.trainable_variables), model.trainable_variables)
        return share

    @tf.function(input_signature=[share_of_epoch(0, 0).element_spec])
    def step(batch):
        return strategy.reduce(SUM, strategy.run(replica_step, args=batch), axis=None)

    steps = 0
    for epoch in range(int(position[0]), EPOCHS):
        done = int(position[1])
        for batch in share_of_epoch(epoch, done):
            value = step(batch)
            done, steps = done + 1, steps + 1
            if steps == options.crash_at and rank == 1 and not resumed:
                print("worker 1: killed", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            if done % SAVE_EVERY == 0:
                position.assign([epoch, done])
                save()
        position.assign([epoch + 1, 0])
        save()
        print(f"epoch {epoch + 1}: loss of the last batch {float(value):.6f}", flush=True)
    weights = b"".join(weight.tobytes() for weight in model.get_weights())
    taken = int(optimizer.iterations.numpy())
    print(f"worker {rank}: {taken} steps, weights {hashlib.sha256(weights).hexdigest()[:16]}", flush=True)
    # Each example once an epoch makes this number of steps, with or without a crash.
    if taken != EPOCHS * -(-len(x) // GLOBAL_BATCH):
        sys.exit("not right: steps were left out, or done twice")
    wait_for_all(strategy)  # all leave together


if __name__ == "__main__":
    main()
