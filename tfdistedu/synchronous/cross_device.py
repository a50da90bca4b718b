"""How does TensorFlow add up gradients by a schedule of ours?

`MirroredStrategy` asks a `tf.distribute.CrossDeviceOps` to add up what lies on its devices. `ScheduleOps` does it by
any all-reduce of `tfdistedu.collectives`: a rank is a replica, a chunk is a part of the flat tensor, and a transfer is
a copy to the receiver's device and an addition there.

    schedule    round 0:  0 --chunk 1--> 1                 tf.device(CPU:1):  mine[1] + replica 0's [1]
                          1 --chunk 0--> 0                 tf.device(CPU:0):  mine[0] + replica 1's [0]

    strategy = mirrored_strategy(3, ScheduleOps("ring"))

Tensors never change, so "what stood at the start of the round" needs no copy: it is the old list of tensors. Sums have
the bits of the plain executor, on every replica, in graph mode and eagerly. For that, a graph must be kept as it was
written: TensorFlow's optimizer of graphs makes one operation of a + (b + c), which adds in another order, and
x * (1/3) of x / 3. See `as_it_is`.

Cost: one small operation a transfer; a ring over n replicas has 2n(n-1) of them for each tensor. On virtual CPUs that
is slower than `ReductionToOneDevice`, for there is no wire to save. Left out: fusing small tensors; sparse gradients
are joined, not added, so no schedule applies: they take TensorFlow's own way, as does the mean of integers.
"""

from __future__ import annotations

import itertools
from typing import Any

from tfdistedu.collectives.algorithms.registry import find
from tfdistedu.collectives.executor import proven
from tfdistedu.collectives.schedule import Schedule, arrives_left, exchanges
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
# Private in TensorFlow, for results on several devices have no public constructor: tests/traps hold it.
from tensorflow.python.distribute import cross_device_ops, distribute_utils, values  # noqa: E402


class ScheduleOps(tf.distribute.ReductionToOneDevice):
    """Add up over the replicas of a `MirroredStrategy` by a schedule.

    What is inherited is the gather, and the way of sparse gradients: their rows are joined on one device and copied.

    Args:
        algorithm: A name ("ring"), a function from `n_ranks` to a schedule, or a schedule. It is verified before its
            first use: one that forgets a replica raises `BrokenSchedule`.

    Raises:
        BadInput: There is no all-reduce of this name.

    Example:
        >>> from tfdistedu.devices import mirrored_strategy
        >>> strategy = mirrored_strategy(3, ScheduleOps("ring"))
        >>> mine = strategy.experimental_distribute_values_from_function(
        ...     lambda context: tf.constant(10.0 ** context.replica_id_in_sync_group)
        ... )
        >>> float(strategy.reduce("SUM", mine, axis=None))
        111.0

    """

    def __init__(self, algorithm: Any = "ring"):
        if isinstance(algorithm, str):
            find(algorithm, "all_reduce")
        self.algorithm = algorithm
        super().__init__()

    def reduce_implementation(self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: Any) -> Any:
        """Reduce one value; TensorFlow calls this, also for each value of a batch.

        Args:
            reduce_op: `tf.distribute.ReduceOp.SUM` or `MEAN`.
            per_replica_value: One tensor (or `tf.IndexedSlices`) a replica, of one shape and type.
            destinations: What lies on the devices that want the result, or the name of one device.
            options: Hints of TensorFlow's; none applies.

        Returns:
            The result on each of these devices.

        """
        given, mean = per_replica_value.values, reduce_op == tf.distribute.ReduceOp.MEAN
        sparse = isinstance(given[0], tf.IndexedSlices)
        if sparse or not (given[0].dtype.is_floating or (given[0].dtype.is_integer and not mean)):
            return super().reduce_implementation(reduce_op, per_replica_value, destinations, options)
        copies = all_reduce_on_devices(proven(self.algorithm, len(given), "all_reduce"), given, mean)
        # Step 1: an all-reduce, when the result is wanted where the parts lie. Each replica keeps its own copy.
        wanted = cross_device_ops.get_devices_from(destinations)
        if tuple(wanted) == tuple(cross_device_ops.get_devices_from(per_replica_value)):
            return distribute_utils.regroup(copies, wrap_class=values.Mirrored)
        # Step 2: elsewhere. Any copy will do, for all have the same bits.
        return self.broadcast(copies[0], destinations)


def all_reduce_on_devices(schedule: Schedule, tensors: Any, mean: bool = False) -> tuple[tf.Tensor, ...]:
    """Run an all-reduce on one tensor a rank, each on its device.

    Args:
        schedule: A verified all-reduce; rank r is `tensors[r]`.
        tensors: Tensors of one shape and type; the shape need not be known in a graph.
        mean: Whether to divide by the number of ranks in the end.

    Returns:
        One tensor a rank, on its device, of the type and shape of the given ones.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> [t.numpy().tolist() for t in all_reduce_on_devices(ring(2), [tf.constant([1.0, 2.0]), tf.ones(2)])]
        [[2.0, 3.0], [2.0, 3.0]]

    """
    devices = [tensor.device for tensor in tensors]
    dtype = tensors[0].dtype
    wide = tf.float32 if dtype in (tf.float16, tf.bfloat16) else dtype  # one widening, one rounding
    # Step 1: cut. The same bounds as everywhere, so that each element is added in the same order.
    window = []
    for device, tensor in zip(devices, tensors, strict=True):
        with tf.device(device):
            flat = tf.reshape(tf.cast(tensor, wide), [-1])
            size = tf.size(flat, tf.int64) if flat.shape[0] is None else flat.shape[0]
            bounds = [chunk * size // schedule.n_chunks for chunk in range(schedule.n_chunks + 1)]
            window.append([flat[a:b] for a, b in itertools.pairwise(bounds)])
    for transfers in schedule.rounds:
        # Step 2: what stood at the start of the round. Tensors do not change, so remembering them is enough.
        before = [list(chunks) for chunks in window]
        exchanged = exchanges(transfers)
        for t in transfers:
            # Step 3: land, in the listed order, on the receiver's device.
            with tf.device(devices[t.dst]):
                value, mine = as_it_is(before[t.src][t.chunk]), as_it_is(window[t.dst][t.chunk])
                if t.reduce:
                    value = value + mine if arrives_left(t, exchanged) else mine + value
            window[t.dst][t.chunk] = value
    # Step 4: join. The mean is divided once, in the wide type.
    results = []
    for device, chunks, tensor in zip(devices, window, tensors, strict=True):
        with tf.device(device):
            whole = tf.concat(chunks, 0)
            whole = whole / as_it_is(tf.constant(len(tensors), wide)) if mean else whole
            result = tf.reshape(tf.cast(whole, dtype), tf.shape(tensor))
            result.set_shape(tensor.shape)
            results.append(result)
    return tuple(results)


def as_it_is(tensor: tf.Tensor) -> tf.Tensor:
    """Keep TensorFlow's optimizer of graphs from rewriting arithmetic across this point.

    Args:
        tensor: Any tensor.

    Returns:
        The same values; in a graph the optimizer does not know where they come from.

    """
    if tf.executing_eagerly():
        return tf.identity(tensor)
    return tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=tensor.shape)
