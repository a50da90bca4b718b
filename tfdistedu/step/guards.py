"""What goes silently wrong under a strategy, and can be seen before the first step?

    made outside the scope        TensorFlow updates one copy, or complains five layers down
    made in another strategy      the same
    not distributed               every replica trains on the same batch: n times the work, the same result
    wrong context                 "merge_call called while ..." or a value that was never reduced
    no aggregation                a replica function assigns to its own copy, and the copies drift apart
    layers that need to know      batch normalisation with a replica's own statistics, one dropout mask for all

Each check raises `BadInput` with the remedy; what may be meant (the layers) is a `ReplicaWarning`. Checks look at
objects, not at numbers, and run once, before tracing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)


def check_variables(strategy: tf.distribute.Strategy, variables: Iterable[Any], what: str) -> None:
    """Refuse variables that were not made in this strategy's scope.

    Args:
        strategy: The strategy that is to train them.
        variables: Keras or TensorFlow variables.
        what: Whose they are, for the message: "model", "optimizer", "metric".

    Raises:
        BadInput: A variable was made outside every scope, or in another strategy's.

    """
    for variable in variables:
        value = getattr(variable, "value", variable) if isinstance(variable, keras.Variable) else variable
        if strategy.extended.variable_created_in_scope(value):
            continue
        name = getattr(variable, "path", getattr(variable, "name", "a variable"))
        owner = getattr(value, "distribute_strategy", None)
        where = "outside this strategy's scope" if owner is None else "in the scope of another strategy object"
        raise BadInput(
            f"the {what}'s variable {name!r} was made {where}, so {_name(strategy)} cannot keep its copies equal. Make "
            f"the {what} inside `with strategy.scope():`, and use one strategy object from there to the last step."
        )


def check_aggregation(strategy: tf.distribute.Strategy, variables: Iterable[Any], what: str) -> None:
    """Refuse variables whose copies drift apart, without a word, when a replica function assigns to them.

    For state of your own: counters, moving averages, accumulators. Weights are changed by the optimizer, which gives
    every copy the same, and need no aggregation.

    Args:
        strategy: The strategy in whose scope they were made.
        variables: TensorFlow variables that a function given to `strategy.run` assigns to.
        what: Whose they are, for the message.

    Raises:
        BadInput: A variable made outside the scope, or without `aggregation`, on more than one replica.

    """
    variables = list(variables)
    check_variables(strategy, variables, what)
    for variable in variables:
        if strategy.num_replicas_in_sync > 1 and variable.aggregation == tf.VariableAggregation.NONE:
            raise BadInput(
                f"the {what}'s variable {variable.name!r} has no aggregation: what a replica function assigns reaches "
                "its own copy alone. Give tf.Variable an aggregation: SUM or MEAN of what the replicas assign, "
                "ONLY_FIRST_REPLICA for what is the same on all; with synchronization=ON_READ each replica keeps its "
                "own, and reading outside of strategy.run combines them."
            )


class ReplicaWarning(UserWarning):
    """Something works on several replicas, and is not what one device does."""


def check_layers(strategy: tf.distribute.Strategy, model: Any) -> None:
    """Warn of layers that do something else on each replica, or the same where they should not.

    Args:
        strategy: The strategy that is to train.
        model: A Keras model; layers inside of layers are found too.

    """
    if strategy.num_replicas_in_sync == 1:
        return
    from tfdistedu.step.dropout import ReplicaSeedGenerator

    # Private in Keras; the public `layers` stops at nested models. A tf.Module has neither.
    for layer in getattr(model, "_flatten_layers", list)():
        if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable and not layer.synchronized:
            warnings.warn(
                f"layer {layer.name!r} normalises with each replica's own mean and variance, keeps other moving "
                "statistics on each replica, and gives NaN on a replica without examples. Use "
                "tfdistedu.step.batch_norm.BatchNormalization, or synchronized=True.",
                ReplicaWarning,
                stacklevel=3,
            )
        generators = getattr(layer, "_seed_generators", ())
        if any(not isinstance(generator, ReplicaSeedGenerator) for generator in generators):
            warnings.warn(
                f"layer {layer.name!r} draws the same random numbers on every replica. Use "
                "tfdistedu.step.dropout.ReplicaDropout, or a layer of your own with a ReplicaSeedGenerator.",
                ReplicaWarning,
                stacklevel=3,
            )


def check_optimizer(strategy: tf.distribute.Strategy, optimizer: Any, variables: list[Any]) -> None:
    """Build the optimizer's variables if need be, and refuse settings that mean something else on replicas.

    Args:
        strategy: The strategy that is to train.
        optimizer: A Keras optimizer, made in the strategy's scope.
        variables: The model's trainable variables.

    Raises:
        BadInput: Clipping, loss scaling or gradient accumulation as Keras ships them, on more than one replica; an
            optimizer of another strategy.

    """
    from tfdistedu.step.optimizer import ReduceFirst
    from tfdistedu.step.precision import LossScale

    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise BadInput(f"the optimizer must be a Keras 3 optimizer object, not {optimizer!r}.")
    check_variables(strategy, optimizer.variables, "optimizer")  # the learning rate is one, before anything is built
    if not optimizer.built:
        # Keras would make these variables inside the first traced step, which crashes under a strategy.
        with strategy.scope():
            optimizer.build(variables)
    check_variables(strategy, optimizer.variables, "optimizer")
    if strategy.num_replicas_in_sync == 1 or isinstance(optimizer, ReduceFirst | LossScale):
        return
    kind = type(optimizer).__name__
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise BadInput(
            "keras.optimizers.LossScaleOptimizer asks only replica 0 whether the gradients are finite. "
            "Use tfdistedu.step.precision.LossScale."
        )
    for setting in ("clipnorm", "global_clipnorm", "clipvalue", "gradient_accumulation_steps"):
        if getattr(optimizer, setting, None):
            raise BadInput(
                f"keras.optimizers.{kind}({setting}={getattr(optimizer, setting)}) on {strategy.num_replicas_in_sync} "
                f"replicas acts on each replica's own gradient, before the reduction. "
                f"Use tfdistedu.step.optimizer.reduce_first(keras.optimizers.{kind})."
            )


def check_distributed(strategy: tf.distribute.Strategy, batch: Any) -> None:
    """Refuse a batch that every replica would see whole, or that was cut for another strategy.

    Cut for four replicas and given to two, TensorFlow trains on the first half and says nothing.

    Args:
        strategy: The strategy that is to run the step.
        batch: What an iterator gave: tensors or per-replica values, nested.

    Raises:
        BadInput: A plain tensor or array, on more than one replica; parts for another number of replicas.

    """
    for leaf in tf.nest.flatten(batch):
        is_distributed = isinstance(leaf, tf.distribute.DistributedValues)
        if is_distributed and len(leaf.values) != _replicas_here(strategy):
            raise BadInput(
                f"the step of {_name(strategy)} got a batch that was cut into {len(leaf.values)} parts, for another "
                "strategy. Distribute the dataset with the strategy that the step was made for."
            )
        if not is_distributed and strategy.num_replicas_in_sync > 1:
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


def _name(strategy: tf.distribute.Strategy) -> str:
    return f"{type(strategy).__name__} with {strategy.num_replicas_in_sync} replica(s)"
