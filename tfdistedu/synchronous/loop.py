"""How does one loop train under every strategy?

    for each epoch:  for each global batch:  step(batch)        the step is `tfdistedu.step.replica`

The loop hands out the data and adds up the loss. A mean over an epoch weighs each batch by its examples, so that a
ragged last batch counts for what it is. Data order, batch size and first weights given, the result is one device's.

Cost: in graph mode one call into TensorFlow a batch. Left out: stopping early, and callbacks other than one function
an epoch; they fit where `on_epoch` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tfdistedu.data.batches import check_batched
from tfdistedu.errors import BadInput, TfdisteduError
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.parts import check_metrics, check_variables
from tfdistedu.step.replica import checked, run_on_replicas

tf = import_tensorflow()


class Epoch(NamedTuple):
    """What one pass over the data gave: `number` from 1, mean `loss` an example, `examples` seen, `steps` taken."""

    number: int
    loss: float
    examples: int
    steps: int


def train(
    strategy: tf.distribute.Strategy,
    step: Callable[[Any], tf.Tensor],
    dataset: Any,
    epochs: int = 1,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> list[Epoch]:
    """Train for some epochs with a step made by `make_train_step` (or one of its siblings).

    Args:
        strategy: The strategy that the step was made for.
        step: A function from a distributed batch to the loss of the global batch.
        dataset: A finite `tf.data.Dataset` of global batches `(x, y)`, which is distributed here; or what
            `strategy.experimental_distribute_dataset` gave.
        epochs: Passes over the data, at least 1.
        on_epoch: Called after each epoch, for progress.

    Returns:
        One `Epoch` a pass.

    Raises:
        BadInput: A dataset that never ends or gives nothing; a number of epochs below 1.
        TfdisteduError: The loss became NaN or infinite; the message says in which epoch.

    """
    if epochs < 1:
        raise BadInput(f"train: epochs is the number of passes over the data, at least 1, not {epochs}.")
    batches = distribute(strategy, dataset)
    history = []
    for number in range(1, epochs + 1):
        losses, counts = [], []
        for batch in batches:
            losses.append(float(step(batch)))  # first, for the step checks the batch
            counts.append(examples_in(strategy, batch))
        counts = over_all_workers(strategy, counts)
        examples = sum(counts)
        if not examples:
            raise BadInput("train: the dataset gave no example. Is it empty, or an iterator that was used up?")
        epoch = Epoch(number, float(np.dot(losses, counts)) / examples, examples, len(losses))
        if not np.isfinite(epoch.loss):
            raise TfdisteduError(f"the loss is {epoch.loss} in epoch {number}: lower the learning rate, or clip.")
        history.append(epoch)
        if on_epoch is not None:
            on_epoch(epoch)
    return history


def evaluate(
    strategy: tf.distribute.Strategy, model: Any, dataset: Any, metrics: Iterable[Any], graph: bool = True
) -> dict[str, float]:
    """Evaluate exactly: each example once, also when the last batch is ragged.

    To evaluate after each epoch, call what `make_evaluate` gives again and again: it traces once.

    Args:
        strategy: The strategy in whose scope model and metrics were made.
        model: A Keras model.
        dataset: A finite `tf.data.Dataset` of `(x, y)`, or a distributed one.
        metrics: Keras metrics; they are reset first.
        graph: Whether each batch runs as a `tf.function` or eagerly.

    Returns:
        The result of each metric, by its name.

    Raises:
        BadInput: A dataset that never ends or gives nothing; two metrics of one name; something made outside the scope.

    """
    return make_evaluate(strategy, model, metrics, graph)(dataset)


def make_evaluate(
    strategy: tf.distribute.Strategy, model: Any, metrics: Iterable[Any], graph: bool = True
) -> Callable[[Any], dict[str, float]]:
    """Make an evaluation that can be called after each epoch, and is traced once.

    Args:
        strategy: The strategy in whose scope model and metrics were made.
        model: A Keras model.
        metrics: Keras metrics; each call resets them first.
        graph: Whether each batch runs as a `tf.function` or eagerly.

    Returns:
        A function from a finite dataset of `(x, y)` to the result of each metric, by its name.

    Raises:
        BadInput: A model or a metric made outside the scope; no metric object; two metrics of one name.

    """
    metrics = list(metrics)
    check_variables(strategy, model.variables, "model")
    check_metrics(strategy, metrics)

    def replica_evaluate(x: Any, y: Any, sample_weight: Any = None) -> None:
        predictions = model(x, training=False)
        for metric in metrics:
            metric.update_state(y, predictions, sample_weight)

    def run(batch: Any) -> None:
        run_on_replicas(strategy, replica_evaluate, batch)

    step = checked(strategy, tf.function(run, reduce_retracing=True) if graph else run)

    def evaluate_once(dataset: Any) -> dict[str, float]:
        for metric in metrics:
            metric.reset_state()
        examples = 0
        for batch in distribute(strategy, dataset):
            step(batch)
            examples += examples_in(strategy, batch)
        if not examples:  # a metric of nothing is 0, which looks like a perfect loss
            raise BadInput("evaluate: the dataset gave no example. Is it empty, or an iterator that was used up?")
        return {metric.name: float(metric.result()) for metric in metrics}

    return evaluate_once


def distribute(strategy: tf.distribute.Strategy, dataset: Any) -> Any:
    """Hand a dataset of global batches out to a strategy's replicas.

    Args:
        strategy: Any strategy.
        dataset: A `tf.data.Dataset`, or one that is distributed already.

    Returns:
        Something to iterate over, again and again, that gives batches of per-replica values.

    Raises:
        BadInput: Neither kind of dataset, one that never ends, or one that was not batched.

    """
    if not isinstance(dataset, tf.data.Dataset | tf.distribute.DistributedDataset):
        raise BadInput(
            f"the dataset must be a tf.data.Dataset of global batches, not a {type(dataset).__name__}. "
            "tfdistedu.data.batches.batched_dataset makes one from arrays."
        )
    plain = isinstance(dataset, tf.data.Dataset)
    cardinality = dataset.cardinality() if plain else dataset.cardinality  # TensorFlow has it both ways
    if int(cardinality) == tf.data.INFINITE_CARDINALITY:
        raise BadInput("the dataset never ends, so an epoch would not either. Use dataset.take(steps_per_epoch).")
    if not plain:
        return dataset
    check_batched(dataset)
    return strategy.experimental_distribute_dataset(dataset)


def examples_in(strategy: tf.distribute.Strategy, batch: Any) -> int:
    """Count the examples of one distributed batch, in this process.

    Args:
        strategy: The strategy that the batch is distributed for.
        batch: A (nested) batch of per-replica values.

    Returns:
        Examples over all replicas of this process.

    """
    return sum(int(tf.shape(part)[0]) for part in strategy.experimental_local_results(tf.nest.flatten(batch)[0]))


def over_all_workers(strategy: tf.distribute.Strategy, counts: list[int]) -> list[int]:
    """Add up counts over the workers; with one process they are what they are.

    Args:
        strategy: Any strategy that keeps step.
        counts: This process's, as many on each worker.

    Returns:
        The sums, the same on all workers.

    """
    try:
        here = len(strategy.extended.worker_devices)
    except RuntimeError:  # one device, without a strategy
        return counts
    if here == strategy.num_replicas_in_sync or not counts:
        return counts

    def of_replica(context: Any) -> tf.Tensor:  # one of this process's replicas says it for all of them
        return tf.constant(counts, tf.int64) * int(context.replica_id_in_sync_group % here == 0)

    values = strategy.experimental_distribute_values_from_function(of_replica)
    return strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None).numpy().tolist()
