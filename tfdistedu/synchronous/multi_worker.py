"""How do several machines train as one device would?

`MultiWorkerMirroredStrategy` runs the same program on each worker; collectives add the gradients over all. The loop and
the step are those of `MirroredStrategy`, line for line. What differs is how it starts, how it breaks, and the data:

    start     TF_CONFIG is read once, when the strategy is made, before anything else   `multi_worker_strategy`
    alone     without TF_CONFIG each worker trains by itself, without a word            refused
    missing   a worker that never comes: TensorFlow waits for ever                      named after a deadline
    stuck     a worker that holds still: a collective waits for ever                    each one has a timeout
    data      each worker reads its own part, by hand, or of all (DATA), or all (OFF)   `share_of_worker`
    uneven    a worker without data goes on with empty batches, until all are done      of TensorFlow; weight zero here

On CPUs a worker is one replica, whatever virtual devices it has.

Cost: the strategy's start waits for the slowest worker; each step sends the gradients over the network. Left out: which
collectives (`RING`, `NCCL`), which TensorFlow chooses; preemption and checkpoints.
"""

from __future__ import annotations

import os
from typing import Any

from tfdistedu.cluster.config import ClusterConfig, parse
from tfdistedu.errors import BadInput, MachineCannot, TfdisteduError
from tfdistedu.quiet import import_tensorflow, is_awake, who_woke_tensorflow
from tfdistedu.synchronous.rendezvous import meet

tf = import_tensorflow()


def multi_worker_strategy(
    n_workers: int | None = None, timeout: float = 60.0, start_deadline: float = 60.0
) -> tf.distribute.MultiWorkerMirroredStrategy:
    """Make the strategy of this worker, or say why it would not be what it seems.

    Args:
        n_workers: How many tasks are expected to keep step (a chief is one); `None`: as many as TF_CONFIG lists.
        timeout: Seconds after which a collective that does not end fails, on every worker. A first step that is slow on
            one worker (tracing, compiling) must fit in.
        start_deadline: Seconds to wait for all tasks.

    Returns:
        The strategy; `num_replicas_in_sync` counts the replicas of all workers.

    Raises:
        BadInput: No TF_CONFIG, one that cannot work, or one with another number of tasks.
        MachineCannot: TensorFlow is awake already; the message says what woke it.
        DeadlineExceeded: Tasks did not come; the message names them.
        TfdisteduError: TensorFlow made a strategy of another size.

    """
    # Step 1: TF_CONFIG. Without it TensorFlow makes a strategy of one worker, on each.
    config = _read_config()
    tasks = {task.name: task.address for job in ("chief", "worker") for task in config.of(job)}
    names = list(tasks)
    if n_workers is not None and n_workers != len(names):
        raise BadInput(f"{n_workers} workers are expected, and TF_CONFIG lists {len(names)}: {', '.join(names)}.")
    # Step 2: asleep. Collectives are configured when TensorFlow wakes.
    if is_awake():
        raise MachineCannot(
            "the strategy of several workers must be made before TensorFlow is used, and it was woken by "
            f"{who_woke_tensorflow()}. Make it first thing in the program."
        )
    # Step 3: all are here. From now on TensorFlow waits by itself, and says nothing.
    is_up = meet(tasks, config.name, start_deadline)
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=timeout)
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    finally:
        is_up()
    # Step 4: it is what it should be.
    replicas = strategy.num_replicas_in_sync
    if replicas < len(names) or replicas % len(names):
        raise TfdisteduError(f"TensorFlow made a strategy of {replicas} replica(s) for {len(names)} workers.")
    return strategy


def _read_config() -> ClusterConfig:
    text = os.environ.get("TF_CONFIG")
    parsed = parse(text or "{}", "multi_worker")
    if parsed.config is None:
        first, *more = parsed.errors
        others = f" And {len(more)} more: `tfdistedu doctor` shows all." if more else ""
        raise BadInput(f"TF_CONFIG, {first.where}: {first.message}. {first.remedy}{others}")
    if not parsed.config.tasks:
        raise BadInput(
            f"TF_CONFIG {'lists no task' if text else 'is not set'}, so this worker would train alone and say nothing. "
            "`tfdistedu run --workers 2 script.py` sets it on this machine."
        )
    return parsed.config


def share_of_worker(
    strategy: tf.distribute.Strategy, dataset: tf.data.Dataset, global_batch: int
) -> tf.distribute.DistributedDataset:
    """Hand out a dataset of examples by hand: each exactly once an epoch, over all workers.

    Every worker must see the same examples in the same order: shuffle before this with a seed, the same on all. Worker
    w of n takes the examples w, w + n, w + 2n, ...: a global batch holds the same examples on any number of workers
    that divides it, and so does an epoch. Workers whose share ends earlier go on with empty batches.

    Args:
        strategy: The strategy.
        dataset: A finite dataset of *examples*, not of batches.
        global_batch: Examples in a global batch; a multiple of the number of workers.

    Returns:
        A distributed dataset for `tfdistedu.synchronous.loop.train`.

    Raises:
        BadInput: A global batch that does not divide by the workers; a dataset that never ends.

    """
    if int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
        raise BadInput("the dataset never ends, so workers could not end together. Use dataset.take(n_examples).")
    n_replicas = strategy.num_replicas_in_sync
    if global_batch < 1 or global_batch % n_replicas:
        raise BadInput(f"a global batch of {global_batch} does not divide by {n_replicas} replicas.")

    def of_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
        own = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
        return own.batch(context.get_per_replica_batch_size(global_batch))

    return strategy.distribute_datasets_from_function(of_worker)


def sharded(dataset: Any, policy: str) -> tf.data.Dataset:
    """Say how TensorFlow cuts a dataset of global batches for the workers.

        FILE    each worker reads its own files; there must be as many as workers
        DATA    each worker reads everything and keeps its part
        OFF     each worker gets what the dataset gives there: for data that differs by worker already

    TensorFlow's own choice (AUTO) is FILE where it finds files, else DATA. Whatever the policy, TensorFlow takes the
    dataset's batches for global ones and gives each replica batch_size / n_replicas of one: with OFF, too.

    Args:
        dataset: A dataset of global batches; with `OFF`, this worker's own examples in batches of the global size.
        policy: `"FILE"`, `"DATA"` or `"OFF"`.

    Returns:
        The dataset with that option.

    """
    policies = tf.data.experimental.AutoShardPolicy
    if policy not in ("FILE", "DATA", "OFF"):
        raise BadInput(f"sharded(policy={policy!r}): FILE, DATA or OFF.")
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = getattr(policies, policy)
    return dataset.with_options(options)
