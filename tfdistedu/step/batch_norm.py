"""Over which examples does batch normalisation take mean and variance, when the batch lies on several replicas?

One device normalises with the mean and variance of the *global* batch [1]. Keras's layer as it comes takes those of
the replica's own examples, and lets each replica keep moving statistics of its own:

    as it comes      replica 0: mean 0     replica 1: mean 10     moving mean: 0 on one, 10 on the other
    synchronized     replica 0: mean 5     replica 1: mean 5      the same on all, and one device's
    a replica without examples:  NaN as it comes (0/0), nothing special when synchronized

`keras.layers.BatchNormalization(synchronized=True)` adds count, sum and sum of squares over the replicas, in one go,
and takes E[x^2] - E[x]^2 for the variance. When the mean is large against the spread, two large numbers cancel. With
variance 1 in float32, the variance was 0.2 % off for inputs around 100, 13 % around 1,000, and six times too large
around 10,000 (a test measures it). So centre what you feed.

Or use `BatchNormalization` of this module. It adds sums first, then squares of *distances from the mean*, as one
device does: right for any offset, at the price of waiting twice. Under a plain `tf.function` that calls `strategy.run`,
Keras's layer also stops at a ragged batch ("Values to regroup had different lengths"); ours does not, and in the steps
of this package neither does (see `run_on_replicas`).

Cost: two small all-reduces (count and sum, then squares) a layer and step, and again backward.
Left out: masks, which Keras leaves unsynchronised without a word (refused here), and renorm.

[1] S. Ioffe, C. Szegedy: Batch Normalization, algorithm 1. ICML 2015.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

SUM = tf.distribute.ReduceOp.SUM


@keras.saving.register_keras_serializable(package="tfdistedu")
class BatchNormalization(keras.layers.BatchNormalization):
    """Batch normalisation over the global batch, in two passes; on one device it is Keras's own.

    Args:
        **kwargs: As for `keras.layers.BatchNormalization`; `synchronized` is on and stays so, `renorm` is refused.

    Raises:
        BadInput: `synchronized=False` or `renorm=True`.

    Example:
        >>> BatchNormalization(momentum=0.9).synchronized
        True

    """

    def __init__(self, **kwargs: Any):
        if not kwargs.pop("synchronized", True):
            raise BadInput("this BatchNormalization is synchronized; for one that is not take keras.layers'.")
        if kwargs.get("renorm"):
            raise BadInput("BatchNormalization(renorm=True) was not made for several replicas; leave renorm out.")
        super().__init__(synchronized=True, **kwargs)

    def _moments(self, inputs: tf.Tensor, mask: Any) -> tuple[tf.Tensor, tf.Tensor]:
        # Private in Keras, which calls it in training with [batch, ...] inputs. A test notices when that ends.
        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync == 1:
            return super()._moments(inputs, mask)
        if mask is not None:
            raise BadInput(f"layer {self.name!r}: a mask would leave batch normalisation unsynchronised; remove it.")
        axes = self._reduction_axes
        x = tf.cast(inputs, tf.float32) if inputs.dtype in (tf.float16, tf.bfloat16) else inputs
        # Step 1: the mean. Sums and counts add up over replicas; means do not, when replica batches are ragged.
        local_count = tf.cast(tf.size(x), x.dtype) / tf.cast(tf.shape(x)[self.axis], x.dtype)
        count, total = context.all_reduce(SUM, [local_count, tf.reduce_sum(x, axes)])
        mean = tf.math.divide_no_nan(total, count)
        # Step 2: the variance. Distances from the global mean are small, whatever the offset of the inputs.
        distance = x - tf.reshape(mean, self._shape_to_broadcast(x))
        variance = tf.math.divide_no_nan(context.all_reduce(SUM, tf.reduce_sum(distance**2, axes)), count)
        return tf.cast(mean, inputs.dtype), tf.cast(variance, inputs.dtype)

    def _shape_to_broadcast(self, x: tf.Tensor) -> list[int]:
        shape = [1] * x.shape.rank
        shape[self.axis] = -1
        return shape
