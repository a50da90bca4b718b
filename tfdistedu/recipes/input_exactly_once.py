"""Input for several workers in which each example comes exactly once an epoch, shuffled anew, and counted.

Shows:  shuffling with a seed that all agree on, then sharing out; files for each worker (FILE); counting who saw what.
Run:    tfdistedu run --workers 3 input_exactly_once.py    (or python on each machine, with TF_CONFIG set there)
Avoids: workers that see some examples twice and others never (shuffled without a seed, then shared out), a rest that is
        dropped, and fewer files than workers, which TensorFlow refuses only when training starts.
"""

import faulthandler
import json
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: fewer lines from TensorFlow

import numpy as np
import tensorflow as tf

EXAMPLES = 100  # does not divide by 3 workers, nor by the global batch
GLOBAL_BATCH = 12
EPOCHS = 2
SEED = 7  # the same on all workers
FILES = 4  # at least one a worker
START_SECONDS, STEP_SECONDS = 120, 60  # how long to wait for workers that do not come, or do not answer
SUM = tf.distribute.ReduceOp.SUM


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


def make_data():  # your data here; here an example is its own number, to be counted
    return np.arange(EXAMPLES)


def from_memory(epoch):
    """Shuffle all examples in one order for all workers, another one in each epoch; then take every n-th."""

    def share_of(context):
        order = np.random.default_rng([SEED, epoch]).permutation(EXAMPLES)
        data = tf.data.Dataset.from_tensor_slices(make_data()[order])
        data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
        return data.batch(context.get_per_replica_batch_size(GLOBAL_BATCH))  # the short last batch stays

    return share_of


def from_files(files, epoch):
    """Share the files out first, so that each worker reads only its own; then shuffle within, with any seed."""

    def share_of(context):
        data = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files), seed=SEED + epoch)
        data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
        data = data.interleave(tf.data.TextLineDataset).map(lambda line: tf.strings.to_number(line, tf.int64))
        return data.shuffle(EXAMPLES).batch(context.get_per_replica_batch_size(GLOBAL_BATCH))

    return share_of


def count(strategy, share_of):
    """Go through an epoch and count over all workers how often each example came."""
    dataset = strategy.distribute_datasets_from_function(share_of)

    def replica_step(examples):  # the training step stands here
        return tf.reduce_sum(tf.one_hot(examples, EXAMPLES, dtype=tf.int64), axis=0)

    @tf.function(input_signature=[dataset.element_spec])
    def step(batch):
        return strategy.reduce(SUM, strategy.run(replica_step, args=(batch,)), axis=None)

    seen, first = np.zeros(EXAMPLES, np.int64), None
    for batch in dataset:  # workers whose share ends earlier go on with empty batches until all are done
        counts = step(batch).numpy()
        first = np.flatnonzero(counts).tolist() if first is None else first
        seen += counts
    return seen, first


def wait_for_all(strategy):
    """Return when every worker has called this: a sum that needs them all."""
    strategy.reduce(SUM, strategy.experimental_distribute_values_from_function(lambda _: tf.constant(1.0)), axis=None)


def main():
    strategy = make_strategy()
    workers = strategy.num_replicas_in_sync
    if GLOBAL_BATCH % workers:
        sys.exit(f"make GLOBAL_BATCH a multiple of {workers}")
    if workers > FILES:
        sys.exit(f"{workers} workers and {FILES} files: some would have none. Write more files, or share out examples")
    right = True
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/part-{number}.txt" for number in range(FILES)]
        for number, file in enumerate(files):
            np.savetxt(file, make_data()[number::FILES], fmt="%d")
        for name, make in (("memory", from_memory), ("files", lambda epoch: from_files(files, epoch))):
            firsts = []
            for epoch in range(EPOCHS):
                seen, first = count(strategy, make(epoch))
                firsts.append(first)
                twice, never = int((seen > 1).sum()), int((seen == 0).sum())
                right &= twice == never == 0
                print(
                    f"{name}, epoch {epoch + 1}: {seen.sum()} examples, {twice} more than once, {never} never",
                    flush=True,
                )
            right &= firsts[0] != firsts[1]  # shuffled anew
        # All leave together: one that is gone while another still reads looks like a crash to it.
        wait_for_all(strategy)
    if not right:
        sys.exit("not right: each example has to come once, in another order in each epoch")


if __name__ == "__main__":
    main()
