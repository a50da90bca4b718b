"""How does a global batch fall on replicas, also when it does not divide?

A *global batch* is what one device would take in one step. `strategy.experimental_distribute_dataset` cuts it into
*replica batches*: pieces of ceil(batch_size / n_replicas), in order, until it is used up. The last replicas get
less, or nothing:

    batch_size 10 on 4 replicas     a full batch    0 1 2 | 3 4 5 | 6 7 8 | 9
                                    a last batch    20 21 | 22 23 | 24    | -

That is why a mean over the replicas' means is not the mean over the examples. `replica_batch_sizes` computes this
rule; a test holds it against what TensorFlow does.

Left out: datasets that cannot tell their batch size, and several workers (there each worker reads its own part).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()


def replica_batch_sizes(n_examples: int, n_replicas: int) -> list[int]:
    """Return how many examples of one global batch each replica gets.

    Args:
        n_examples: Examples in the global batch; 0 or more.
        n_replicas: Replicas; at least 1.

    Returns:
        One number a replica; they add up to `n_examples`.

    Raises:
        BadInput: A negative number of examples, or no replica.

    Example:
        >>> replica_batch_sizes(10, 4)
        [3, 3, 3, 1]
        >>> replica_batch_sizes(5, 4)
        [2, 2, 1, 0]

    """
    if n_examples < 0 or n_replicas < 1:
        raise BadInput(f"replica_batch_sizes: {n_examples} examples on {n_replicas} replicas cannot be.")
    each = -(-n_examples // n_replicas)
    return [min(each, max(0, n_examples - rank * each)) for rank in range(n_replicas)]


def split_on_replicas(batch: Sequence[np.ndarray], n_replicas: int) -> list[tuple[np.ndarray, ...]]:
    """Cut the arrays of one global batch into replica batches, by the rule above.

    Args:
        batch: Arrays with the same first dimension, such as `(x, y)`.
        n_replicas: Replicas; at least 1.

    Returns:
        One tuple of arrays a replica (views, some may be empty).

    Example:
        >>> [x.tolist() for (x,) in split_on_replicas([np.arange(5)], 4)]
        [[0, 1], [2, 3], [4], []]

    """
    sizes = {len(array) for array in batch}
    if len(sizes) != 1:
        raise BadInput(f"split_on_replicas: the arrays of a batch have different lengths: {sorted(sizes)}.")
    ends = np.cumsum(replica_batch_sizes(sizes.pop(), n_replicas))
    return [tuple(array[start:end] for array in batch) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def on_replicas(strategy: tf.distribute.Strategy, batch: Sequence[np.ndarray]) -> tuple:
    """Place one global batch on a strategy's replicas, whatever its size.

    Every batch may have another size here, which a `tf.data.Dataset` with one batch size cannot do; the equivalence
    tests draw them so.

    Args:
        strategy: Any strategy in one process.
        batch: Arrays with the same first dimension, such as `(x, y)`.

    Returns:
        A tuple of per-replica values, to be given to a step.

    """
    pieces = split_on_replicas(batch, strategy.num_replicas_in_sync)
    return tuple(
        strategy.experimental_distribute_values_from_function(
            lambda context, which=which: tf.constant(pieces[context.replica_id_in_sync_group][which])
        )
        for which in range(len(batch))
    )


def batched_dataset(arrays: Sequence[np.ndarray], batch_size: int, shuffle_seed: int | None = None) -> tf.data.Dataset:
    """Make a dataset of global batches whose order is the same in every epoch and under every strategy.

    Keras visits data that reshuffles each epoch in another order under a strategy than on one device; so the order is
    drawn once, here, from the seed.

    Args:
        arrays: Arrays with the same first dimension, such as `(x, y)`.
        batch_size: Examples in a global batch; the last batch of an epoch may have fewer.
        shuffle_seed: Seed of the one shuffle; `None` keeps the order.

    Returns:
        A `tf.data.Dataset` that yields tuples of tensors of shape [batch_size, ...].

    Raises:
        BadInput: A batch size below 1, or arrays of different lengths.

    """
    if batch_size < 1:
        raise BadInput(f"batched_dataset: batch_size is the examples in a global batch, at least 1, not {batch_size}.")
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) != 1:
        raise BadInput(f"batched_dataset: the arrays have different lengths: {lengths}.")
    if shuffle_seed is not None:
        order = np.random.default_rng(shuffle_seed).permutation(lengths[0])
        arrays = [array[order] for array in arrays]
    return tf.data.Dataset.from_tensor_slices(tuple(arrays)).batch(batch_size)


def check_batched(dataset: tf.data.Dataset) -> None:
    """Refuse a dataset of single examples, where a part has no first dimension to cut.

    Args:
        dataset: Global batches.

    Raises:
        BadInput: A part of its elements is a scalar.

    """
    for spec in tf.nest.flatten(dataset.element_spec):
        if getattr(getattr(spec, "shape", None), "rank", None) == 0:
            raise BadInput(
                f"the dataset gives single examples, not batches: one of their parts is a {spec.dtype.name} scalar. "
                "Call dataset.batch(batch_size) first."
            )
