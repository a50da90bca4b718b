"""Our answers to the exercises of this lesson. Try yours first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfdistedu.devices import tf

SUM = tf.distribute.ReduceOp.SUM


def train(
    strategy: tf.distribute.Strategy,
    model: Any,
    optimizer: Any,
    loss: Callable[[Any, Any], Any],
    dataset: tf.data.Dataset,
    epochs: int = 1,
) -> list[float]:
    """Train as one device would, on all replicas of a strategy."""
    # Step 1: build the optimizer in the scope. Its slots are variables, and a replica may not make variables.
    with strategy.scope():
        optimizer.build(model.trainable_variables)
    # Step 2: hand the examples out. Each replica gets its part of every global batch.
    batches = strategy.experimental_distribute_dataset(dataset)

    # --8<-- [start:replica_step]
    def replica_step(x, y):
        # Step 3: divide by the global count. Then the shares of all replicas add up to one device's mean.
        count = tf.shape(x)[0]
        context = tf.distribute.get_replica_context()
        global_count = context.all_reduce(SUM, count) if strategy.num_replicas_in_sync > 1 else count
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(loss(y, model(x, training=True)))
            share = total / tf.cast(global_count, total.dtype)
        gradients = tape.gradient(share, model.trainable_variables)
        # Step 4: apply. The optimizer adds the gradients up over the replicas by itself.
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return total, count

    # --8<-- [end:replica_step]

    @tf.function(reduce_retracing=True)
    def step(batch):
        totals, counts = strategy.run(replica_step, args=batch)
        return strategy.reduce(SUM, totals, axis=None), strategy.reduce(SUM, counts, axis=None)

    losses = []
    for _ in range(epochs):
        # Step 5: weigh every example alike. A short last batch counts for what it is.
        results = [step(batch) for batch in batches]
        losses.append(sum(float(total) for total, _ in results) / sum(int(count) for _, count in results))
    return losses


def predict_counts() -> dict[str, int]:
    """Predict how often each part of `count_runs.py` runs with 4 replicas, 10 examples, global batches of 4, 2 epochs.

    Return {"batches": ..., "optimizer_iterations": ..., "replica_step_in_python": ..., "replica_step_in_the_graph":
    ...} with your numbers. `count_runs.py` is in this folder: read it, and run it only after you have guessed.
    """
    from tfdistedu.course.subject import load_module

    return load_module(Path(__file__).parent / "count_runs.py").count_runs(4, 10, 4, 2)
