"""When does Keras's `compile` and `fit` under a strategy give what one device gives?

`fit` distributes the dataset, runs its own step on each replica, and calls `optimizer.apply` there. With an optimizer
of `tfdistedu.step.optimizer`, which reduces before it clips, the weights are one device's if three things hold:

    every batch divides evenly      4 on 2 replicas: 2 | 2      mean of the replicas' means = mean over the batch
    the order is the same           no reshuffling each epoch: a strategy draws another order
    no layer is per replica         batch normalisation synchronised, no dropout

On a batch that does not divide, `fit` takes the **mean of the replicas' means**, and a replica without examples counts
as a mean of 0. 5 examples on 4 replicas fall as 2 | 2 | 1 | 0, and the step follows

    (mean of 2  +  mean of 2  +  mean of 1  +  0) / 4          instead of          sum of 5 / 5

so the single example counts 1/4 and the others 1/8 each; the penalties of weights come in full. When already the first
batch is ragged, `fit` stops ("Inputs to operation AddN must have the same size and shape"). No setting of `fit`
changes that. `check_batches` refuses such data; the loop of `tfdistedu.synchronous.loop` takes it.

Keras rounds 1 / n to float32: in float64 with 3 replicas, weights are equal to 8 digits only.

Cost: `check_batches` reads the dataset once. Left out: `validation_data` on ragged batches (`evaluate` weighs examples,
not batches); several workers (`tfdistedu.synchronous.multi_worker_fit`).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tfdistedu.data.batches import check_batched, replica_batch_sizes
from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.parts import ReplicaWarning, check_metrics, check_parts
from tfdistedu.step.precision import LossScale

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)


def compile_model(
    strategy: tf.distribute.Strategy, model: Any, optimizer: Any, loss: Any, metrics: Any = None, **kwargs: Any
) -> None:
    """Compile a model for `fit` under a strategy, after the checks that a custom loop makes.

    Args:
        strategy: The strategy in whose scope model, optimizer and metrics were made.
        model: A Keras model.
        optimizer: A Keras optimizer, best one of `tfdistedu.step.optimizer`.
        loss: As for `model.compile`.
        metrics: As for `model.compile`.
        **kwargs: More for `model.compile`. `jit_compile` is off unless given: XLA would compile for each replica.

    Raises:
        BadInput: Something made outside the scope, or an optimizer that clips, scales or accumulates per replica;
            float16 without `LossScale`, for which Keras would put its own.

    """
    check_parts(strategy, model, optimizer)
    for metric in tf.nest.flatten([metrics, kwargs.get("weighted_metrics")]):
        if isinstance(metric, keras.metrics.Metric):  # names are made by compile, in the scope
            check_metrics(strategy, [metric])
    in_float16 = any(layer.compute_dtype == "float16" for layer in model._flatten_layers())
    if strategy.num_replicas_in_sync > 1 and in_float16 and not isinstance(optimizer, LossScale):
        raise BadInput(
            "compile_model: the model computes in float16, and compile would put Keras's own loss scaling around the "
            "optimizer, which looks for overflows on replica 0 alone. "
            "Give tfdistedu.step.precision.LossScale(optimizer)."
        )
    with strategy.scope():
        model.compile(optimizer=optimizer, loss=loss, metrics=metrics, **{"jit_compile": False, **kwargs})


def check_batches(strategy: tf.distribute.Strategy, dataset: tf.data.Dataset) -> None:
    """Refuse data on which `fit` would not give one device's result.

    Args:
        strategy: The strategy that is to train.
        dataset: A finite dataset of global batches.

    Raises:
        BadInput: A batch that does not divide evenly by the number of replicas; no dataset, an endless or an empty one,
            or one that was not batched.

    """
    n = strategy.num_replicas_in_sync
    if not isinstance(dataset, tf.data.Dataset):
        raise BadInput(f"fit needs a tf.data.Dataset of global batches to be checked, not a {type(dataset).__name__}.")
    if int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
        raise BadInput("the dataset never ends, so it cannot be checked. Check it before repeat().")
    check_batched(dataset)
    if next(iter(dataset.take(1)), None) is None:
        raise BadInput("the dataset gives no batch: fit would train on nothing. Is it empty, or shorter than a batch?")
    if n == 1:
        return
    sizes = dataset.map(lambda *batch: tf.shape(tf.nest.flatten(batch)[0])[0])
    for number, size in enumerate(sizes.as_numpy_iterator(), start=1):
        if size % n:
            parts = " | ".join(map(str, replica_batch_sizes(int(size), n)))
            raise BadInput(
                f"batch {number} has {size} examples, which fall on {n} replicas as {parts}: fit would take the mean "
                "of the replicas' means. Take a batch size that divides evenly, with drop_remainder=True for the last; "
                "or tfdistedu.synchronous.loop.train, which is right for any size."
            )
    first, again = (tf.nest.flatten(next(iter(dataset.as_numpy_iterator()), ())) for _ in range(2))
    if not all(np.array_equal(a, b) for a, b in zip(first, again, strict=True)):
        warnings.warn(
            "the dataset comes in another order each time (shuffle without reshuffle_each_iteration=False?): under a "
            "strategy the order is another one than on one device, so the weights will not be equal.",
            ReplicaWarning,
            stacklevel=2,
        )


def fit(strategy: tf.distribute.Strategy, model: Any, dataset: tf.data.Dataset, epochs: int = 1, **kwargs: Any) -> Any:
    """Check the data, then call `model.fit`.

    Args:
        strategy: The strategy that the model was compiled for.
        model: A model that `compile_model` has seen.
        dataset: A finite dataset of global batches, all of which divide evenly.
        epochs: Passes over the data.
        **kwargs: More for `model.fit`.

    Returns:
        Keras's `History`.

    Raises:
        BadInput: See `check_batches`.

    """
    check_batches(strategy, dataset)
    return model.fit(dataset, epochs=epochs, **{"verbose": 0, "shuffle": False, **kwargs})
