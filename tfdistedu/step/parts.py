"""Do model, optimizer and metrics fit a strategy, before the first step is traced?

    made outside the scope        TensorFlow updates one copy, or complains five layers down
    made in another strategy      the same
    no aggregation                a replica function assigns to its own copy, and the copies drift apart (a layer's
                                  own state is looked at after the first step)
    not built, not a metric       Keras complains in the middle of the first traced step, of something else
    clips, scales, accumulates    as Keras ships it: on each replica's own gradient
    layers that need to know      batch normalisation with a replica's own statistics, one dropout mask for all

Each check raises `BadInput` with the remedy; what may be meant (the layers) is a `ReplicaWarning`. Checks look at
objects, not at numbers; `check_copies` alone reads numbers, once, after the first step.

What is wrong with a batch or with the place of a call is in `tfdistedu.step.guards`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.dropout import ReplicaSeedGenerator
from tfdistedu.step.guards import name_of
from tfdistedu.step.optimizer import ReduceFirst
from tfdistedu.step.precision import LossScale

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)


class ReplicaWarning(UserWarning):
    """Something works on several replicas, and is not what one device does."""


def check_parts(strategy: tf.distribute.Strategy, model: Any, optimizer: Any, metrics: Iterable[Any] = ()) -> None:
    """Refuse a model, optimizer or metric that this strategy cannot train, before anything is traced.

    Args:
        strategy: The strategy that is to run the step.
        model: A Keras model.
        optimizer: A Keras optimizer; its variables are made here if need be.
        metrics: Keras metrics.

    """
    check_model(strategy, model)
    check_optimizer(strategy, optimizer, model.trainable_variables)
    check_metrics(strategy, metrics)


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
            f"the {what}'s variable {name!r} was made {where}, so {name_of(strategy)} cannot keep its copies equal. "
            f"Make the {what} inside `with strategy.scope():`, and use one strategy object from there to the last step."
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


def check_model(strategy: tf.distribute.Strategy, model: Any) -> None:
    """Refuse a model that has no variables yet, or not this strategy's; warn of layers that need to know of replicas.

    Args:
        strategy: The strategy that is to train.
        model: A Keras model.

    Raises:
        BadInput: The model is not built: the optimizer would be built for no variables. Or see `check_variables`.

    """
    if not getattr(model, "built", True) and not model.trainable_variables:
        raise BadInput(
            f"the model {model.name!r} is not built, so it has no variables yet. Let it begin with "
            "keras.layers.Input(shape), or call model.build((None, ...)), inside `with strategy.scope():`."
        )
    check_variables(strategy, model.variables, "model")
    check_layers(strategy, model)


def check_layers(strategy: tf.distribute.Strategy, model: Any) -> None:
    """Warn of layers that do something else on each replica, or the same where they should not.

    Args:
        strategy: The strategy that is to train.
        model: A Keras model; layers inside of layers are found too.

    """
    if strategy.num_replicas_in_sync == 1:
        return
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
        rates = [getattr(layer, name) for name in ("dropout", "recurrent_dropout") if hasattr(layer, name)]
        if rates and not any(rates):
            continue  # a cell of a recurrent layer has a generator, whether it drops or not
        if any(not isinstance(generator, ReplicaSeedGenerator) for generator in generators):
            warnings.warn(
                f"layer {layer.name!r} draws the same random numbers on every replica. Use "
                "tfdistedu.step.dropout.ReplicaDropout, or a layer of your own with a ReplicaSeedGenerator.",
                ReplicaWarning,
                stacklevel=3,
            )


def check_metrics(strategy: tf.distribute.Strategy, metrics: Iterable[Any]) -> None:
    """Refuse what is no metric object, two metrics of one name, and metrics that were made outside the scope.

    Args:
        strategy: The strategy in whose scope they are to be.
        metrics: Keras metrics.

    Raises:
        BadInput: One of these.

    """
    names = set()
    for metric in metrics:
        if not isinstance(metric, keras.metrics.Metric):
            raise BadInput(
                f"a metric must be a Keras metric object made inside `with strategy.scope():`, not {metric!r}; for "
                "example keras.metrics.SparseCategoricalAccuracy()."
            )
        if metric.name in names:
            raise BadInput(f"two metrics have the name {metric.name!r}, and only one result. Give one another name=.")
        names.add(metric.name)
        check_variables(strategy, metric.variables, f"metric {metric.name}")


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


def check_copies(strategy: tf.distribute.Strategy, model: Any) -> None:
    """Warn of a layer's own state whose copies a step made different: its `call` assigned what its replica saw.

    Args:
        strategy: The strategy that took a step.
        model: A Keras model.

    """
    # Weights that are not trained. Batch normalisation was spoken of before the step (see `check_layers`).
    for layer in getattr(model, "_flatten_layers", list)():
        if isinstance(layer, keras.layers.BatchNormalization) or not isinstance(layer, keras.Layer):
            continue
        for variable in layer._non_trainable_variables:
            first, *others = strategy.experimental_local_results(variable.value)
            if all(np.array_equal(first.numpy(), other.numpy(), equal_nan=True) for other in others):
                continue
            warnings.warn(
                f"after the first step {variable.path!r} is another one on each replica: layer {layer.name!r} assigned "
                'what its replica saw. Give add_weight an aggregation ("mean", "sum" or "only_first_replica"), or '
                "all-reduce the value before it is assigned.",
                ReplicaWarning,
                stacklevel=3,
            )
