"""Is this batch for these replicas, and is this the place for the call?

    not (x, y)                    Python complains of an argument of a function that nobody called
    not distributed               every replica trains on the same batch: n times the work, the same result
    cut for another strategy      TensorFlow trains on some of the parts, and says nothing
    wrong context                 "merge_call called while ..." or a value that was never reduced

Each check raises `BadInput` with the remedy, and runs before a step's traced function. What is wrong with a model, an
optimizer or a metric is in `tfdistedu.step.parts`.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()


def check_distributed(strategy: tf.distribute.Strategy, batch: Any) -> None:
    """Refuse a batch that every replica would see whole, or that was cut for another strategy.

    Cut for four replicas and given to two, TensorFlow trains on the first half and says nothing.

    Args:
        strategy: The strategy that is to run the step.
        batch: What an iterator gave: tensors or per-replica values, nested.

    Raises:
        BadInput: Not `(x, y)` or `(x, y, sample_weight)`; a plain tensor or array, on more than one replica; parts for
            another number of replicas.

    """
    if not isinstance(batch, tuple | list) or not 2 <= len(batch) <= 3:
        got = f"{len(batch)} parts" if isinstance(batch, tuple | list) else f"a {type(batch).__name__}"
        raise BadInput(
            f"a batch must be (x, y) or (x, y, sample_weight), not {got}. Map the dataset to such tuples; x and y may "
            "be nested."
        )
    for leaf in tf.nest.flatten(batch):
        is_distributed = isinstance(leaf, tf.distribute.DistributedValues)
        if is_distributed and len(leaf.values) != _replicas_here(strategy):
            raise BadInput(
                f"the step of {name_of(strategy)} got a batch that was cut into {len(leaf.values)} parts, for another "
                "strategy. Distribute the dataset with the strategy that the step was made for."
            )
        if not is_distributed and strategy.num_replicas_in_sync > 1 and not getattr(strategy, "plain_values", False):
            raise BadInput(
                f"the step got {_shape(leaf)} that was not distributed: each of {strategy.num_replicas_in_sync} "
                "replicas would train on the same examples. Iterate over "
                "`strategy.experimental_distribute_dataset(dataset)`, or use tfdistedu.data.batches.on_replicas."
            )


def check_cross_replica_context(what: str) -> None:
    """Refuse a call from inside a replica function.

    Args:
        what: What was called, for the message.

    Raises:
        BadInput: The caller runs in replica context of more than one replica.

    """
    context = tf.distribute.get_replica_context()
    if context is not None and context.num_replicas_in_sync > 1:
        raise BadInput(
            f"{what} was called inside a replica function (on replica {_replica_id(context)}). It runs all replicas "
            "itself: call it outside of strategy.run."
        )


def check_replica_context(what: str) -> None:
    """Refuse a call from outside a replica function.

    Args:
        what: What was called, for the message.

    Raises:
        BadInput: The caller runs in cross-replica context.

    """
    if tf.distribute.in_cross_replica_context():
        raise BadInput(f"{what} was called in cross-replica context. Call it in a function given to strategy.run.")


def name_of(strategy: tf.distribute.Strategy) -> str:
    """Name a strategy in a message.

    Args:
        strategy: Any strategy.

    Returns:
        Its kind and its number of replicas.

    """
    return f"{type(strategy).__name__} with {strategy.num_replicas_in_sync} replica(s)"


def _replicas_here(strategy: tf.distribute.Strategy) -> int:
    """Count the replicas of this process."""
    try:
        return len(strategy.extended.worker_devices)
    except RuntimeError:  # one device, without a strategy
        return 1


def _replica_id(context: Any) -> Any:
    replica = tf.get_static_value(context.replica_id_in_sync_group)
    return context.replica_id_in_sync_group if replica is None else int(replica)


def _shape(leaf: Any) -> str:
    shape = getattr(leaf, "shape", None)
    kind = type(leaf).__name__
    return f"{'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}" + (
        f" of shape {tuple(shape)}" if shape is not None else ""
    )
