"""What does a strategy do for the training step? The smallest one: a device a process, joined by our own all-reduce.

The step, the loop and the optimizers of this package run under it as they are. All that it has to say is this:

    how many, and who am I        replicas = ranks, this replica = this rank
    a variable is made            its first value is rank 0's, on all
    context.all_reduce(list)      dense: in buckets, through `comm.all_reduce`; sparse: indices and rows are gathered
    strategy.reduce(value)        the same, for one value
    a dataset is distributed      each rank takes its part of each global batch, as TensorFlow would cut it

    gradients --bucket 0--> numpy --> shared memory or TCP --> numpy --> tensors --> clip, apply
              --bucket 1-->   (while the backward pass goes on)

In graph mode each bucket is one call into Python, which waits only for its own gradients; TensorFlow keeps such calls
in the order in which they were traced, so all ranks send the same buckets in the same order.

Cost: a copy of the gradients into buckets and one back; see `tfdistedu bench step`. Left out: several devices a
process; Keras metrics over ranks (each rank counts its own part); strategies with variables on other devices.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfdistedu.errors import BadInput
from tfdistedu.links.communicator import Communicator
from tfdistedu.quiet import import_tensorflow
from tfdistedu.synchronous.buckets import BUCKET_BYTES, FIRST_BYTES, denser_is_cheaper, plan_buckets

tf = import_tensorflow()
# Private in TensorFlow, for a strategy's inside has no public base: tests/traps hold it.
from tensorflow.python.distribute import distribute_lib, one_device_strategy  # noqa: E402


class FromScratchStrategy(tf.distribute.Strategy):
    """A strategy over processes that our own all-reduce joins. Made alike on each rank.

    `failure` is what went wrong in a reduction: in graph mode TensorFlow wraps it in an error of its own.

    Args:
        comm: The rank's communicator; it stays open as long as the strategy is used.
        bucket_bytes: When a bucket of gradients is full.
        first_bytes: The same for the first bucket.
        wire: "float16": float32 gradients travel with half the bytes and three digits. `None`: as they are.
        trace: Called with (what, bucket, seconds of `time.perf_counter`) when a bucket starts and ends.

    Raises:
        BadInput: Another `wire`.

    """

    def __init__(
        self,
        comm: Communicator,
        bucket_bytes: int = BUCKET_BYTES,
        first_bytes: int = FIRST_BYTES,
        wire: str | None = None,
        trace: Callable[[str, int, float], None] | None = None,
    ):
        if wire not in (None, "float16"):
            raise BadInput(f"FromScratchStrategy(wire={wire!r}): None or 'float16'.")
        self.comm = comm
        # A rank's part of a batch is a tensor like any other, and no bundle of one for each replica.
        self.plain_values = True
        self.failure: Exception | None = None
        super().__init__(_Extended(self, comm, (bucket_bytes, first_bytes), wire, trace))


class _Context(tf.distribute.ReplicaContext):
    """Who a replica is. Its `all_reduce` ends in `_Extended._replica_ctx_all_reduce`."""

    def __init__(self, strategy: FromScratchStrategy):
        super().__init__(strategy, replica_id_in_sync_group=strategy.comm.rank)

    @property
    def devices(self) -> list[str]:
        return list(self._strategy.extended.worker_devices)


class _Extended(one_device_strategy.OneDeviceExtended):
    """The inside of the strategy: one device, and what joins the ranks."""

    def __init__(
        self, strategy: FromScratchStrategy, comm: Communicator, limits: tuple[int, int], wire: str | None, trace: Any
    ):
        super().__init__(strategy, "/cpu:0" if not tf.config.list_logical_devices("GPU") else "/gpu:0")
        self._comm, self._limits, self._wire, self._trace = comm, limits, wire, trace

    # How many, and who am I.

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._comm.n_ranks

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        with tf.device(self._device), _Context(self._container_strategy()):
            return fn(*args, **kwargs)

    def _experimental_distribute_values_from_function(self, value_fn: Callable[[Any], Any]) -> Any:
        return value_fn(distribute_lib.ValueContext(self._comm.rank, self._comm.n_ranks))

    # A variable is made.

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        variable = super()._create_variable(next_creator, **kwargs)
        if tf.executing_eagerly() and (variable.dtype.is_floating or variable.dtype.is_integer):
            variable.assign(self._comm.broadcast(variable.numpy()))
        return variable

    # Reductions.

    def _use_merge_call(self) -> bool:
        return False

    def _replica_ctx_all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        flat = tf.nest.flatten(value)
        dense = {i: tf.convert_to_tensor(v) for i, v in enumerate(flat) if not isinstance(v, tf.IndexedSlices)}
        results = {i: self._reduce_sparse(v) for i, v in enumerate(flat) if i not in dense}
        if reduce_op == tf.distribute.ReduceOp.MEAN and results:
            results = {i: tf.IndexedSlices(v.values / self._comm.n_ranks, v.indices, v.dense_shape)
                       for i, v in results.items()}  # fmt: skip
        results |= self._reduce_dense(dense, "mean" if reduce_op == tf.distribute.ReduceOp.MEAN else "sum")
        return tf.nest.pack_sequence_as(value, [results[i] for i in range(len(flat))])

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        return self._replica_ctx_all_reduce(reduce_op, value)

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> Any:
        return self._replica_ctx_all_reduce(reduce_op, [value for value, _ in value_destination_pairs])

    def _reduce_dense(self, tensors: dict[int, tf.Tensor], op: str) -> dict[int, tf.Tensor]:
        """Reduce tensors in buckets; a tensor whose size the graph does not know travels alone."""
        places = list(tensors)
        known = [i for i in places if tensors[i].shape.is_fully_defined()]
        sizes = [tensors[i].shape.num_elements() * tensors[i].dtype.size for i in known]
        buckets = plan_buckets(sizes, [tensors[i].dtype.name for i in known], *self._limits)
        groups = [[known[member] for member in bucket.members] for bucket in buckets]
        groups += [[i] for i in places if i not in known]
        results = {}
        for number, group in enumerate(groups):
            members = [tensors[i] for i in group]
            reduced = tf.numpy_function(self._bucket(number, op), members, [member.dtype for member in members])
            # Eagerly one result comes without its list.
            for i, member, result in zip(group, members, tf.nest.flatten(reduced), strict=True):
                result = tf.convert_to_tensor(result)
                result.set_shape(member.shape)
                results[i] = result
        return results

    def _bucket(self, number: int, op: str) -> Callable[..., list[np.ndarray]]:
        """Make what runs in Python for one bucket: fuse, all-reduce, cut."""
        comm, trace = self._comm, self._trace

        def reduce(*arrays: np.ndarray) -> list[np.ndarray]:
            with self._noting_failure():
                return fuse_and_reduce(*arrays)

        def fuse_and_reduce(*arrays: np.ndarray) -> list[np.ndarray]:
            if trace is not None:
                trace("start", number, time.perf_counter())
            dtype = arrays[0].dtype
            flat = arrays[0].reshape(-1) if len(arrays) == 1 else np.concatenate([a.reshape(-1) for a in arrays])
            if self._wire is not None and dtype == np.float32:
                total = comm.all_reduce(flat.astype(np.float16), op).astype(np.float32)
            else:
                total = comm.all_reduce(flat, op)
            if trace is not None:
                trace("end", number, time.perf_counter())
            ends = np.cumsum([a.size for a in arrays])[:-1]
            return [part.reshape(a.shape) for part, a in zip(np.split(total, ends), arrays, strict=True)]

        return reduce

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._container_strategy().failure = error
            raise

    def _reduce_sparse(self, slices: tf.IndexedSlices) -> tf.IndexedSlices:
        """Gather all ranks' rows; or add up a dense table, where that sends less, and keep what was touched."""
        comm = self._comm

        def gather(values: np.ndarray, indices: np.ndarray, n_rows: np.ndarray) -> list[np.ndarray]:
            with self._noting_failure():
                return gather_or_add(values, indices, n_rows)

        def gather_or_add(values: np.ndarray, indices: np.ndarray, n_rows: np.ndarray) -> list[np.ndarray]:
            total = int(comm.all_reduce(np.array([len(indices)]))[0])
            row_bytes = values[:1].nbytes or values.itemsize * int(np.prod(values.shape[1:]))
            if not denser_is_cheaper(total, int(n_rows), row_bytes):
                return [comm.all_gather(values), comm.all_gather(indices)]
            table = np.zeros((int(n_rows), *values.shape[1:]), values.dtype)
            np.add.at(table, indices, values)
            touched = np.zeros(int(n_rows), np.uint8)
            touched[indices] = 1
            rows = np.flatnonzero(comm.all_reduce(touched, "max")).astype(indices.dtype)
            return [comm.all_reduce(table)[rows], rows]

        if slices.dense_shape is None:
            raise BadInput("a sparse gradient without dense_shape: its table's number of rows is not known.")
        n_rows = slices.dense_shape[0]
        values, indices = tf.numpy_function(
            gather, [slices.values, slices.indices, n_rows], [slices.values.dtype, slices.indices.dtype]
        )
        values.set_shape([None, *slices.values.shape[1:]])
        indices.set_shape([None])
        return tf.IndexedSlices(values, indices, slices.dense_shape)

    # A dataset is distributed.

    def _experimental_distribute_dataset(self, dataset: tf.data.Dataset, options: Any) -> Any:
        rank, n_ranks = self._comm.rank, self._comm.n_ranks

        def mine(*batch: Any) -> Any:
            size = tf.shape(tf.nest.flatten(batch)[0])[0]
            each = (size + n_ranks - 1) // n_ranks
            start = tf.minimum(rank * each, size)
            return tf.nest.map_structure(lambda leaf: leaf[start : start + each], batch if len(batch) > 1 else batch[0])

        return super()._experimental_distribute_dataset(dataset.map(mine), options)

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[Any], tf.data.Dataset], options: Any) -> Any:
        context = tf.distribute.InputContext(self._comm.n_ranks, self._comm.rank, self._comm.n_ranks)

        def padded(_: Any) -> tf.data.Dataset:
            # Ranks whose share ends earlier go on with empty batches: all must take part in each step.
            dataset = dataset_fn(context)
            own = int(dataset.cardinality())
            if own < 0:
                raise BadInput(
                    f"rank {self._comm.rank}: the number of batches is not known, so ranks could not end together. "
                    "Say it: dataset.apply(tf.data.experimental.assert_cardinality(n))."
                )
            most = int(self._comm.all_reduce(np.array([own]), "max")[0])
            empty = tf.nest.map_structure(lambda spec: tf.zeros([0, *spec.shape[1:]], spec.dtype), dataset.element_spec)
            return dataset.concatenate(tf.data.Dataset.from_tensors(empty).repeat(most - own))

        return super()._distribute_datasets_from_function(padded, options)
