"""In which order are gradients reduced, clipped and applied?

    one device      gradient of the global batch ------------------> clip -> apply
    n replicas      n gradients -> **reduce** (add over replicas) -> clip -> apply
    Keras 3         n gradients -> clip each -> reduce ------------------> apply      silently something else

Clipping each replica's part first means another threshold: two replicas, each clipped to norm 1, move the weight by 2.
`ReduceFirst` is a mix-in that puts the reduction in front. Keras then clips what one device would clip, decays and
applies; its own second reduction (`_all_reduce_sum_gradients`, private, guarded by a trap test) is switched off. It
works in a custom loop (`optimizer.apply` in `strategy.run`) and in `fit`, which calls the same method.

    optimizer = SGD(0.1, momentum=0.9, global_clipnorm=1.0)        # of this module, in place of Keras's
    optimizer = reduce_first(keras.optimizers.Lion)(1e-4)          # any other

Cost: none; it is the reduction that happens anyway. Left out: Keras's `gradient_accumulation_steps`, which reduces
inside a branch and is refused under a strategy: see `tfdistedu.step.accumulate`.
"""

from __future__ import annotations

import functools
from typing import Any

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.sparse import sum_repeated_rows

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)


def all_reduce_sum(gradients: list[Any]) -> list[Any]:
    """Add gradients up over replicas, in replica context; repeated rows of sparse ones are added up too.

    Args:
        gradients: Tensors, `tf.IndexedSlices` or `None` (which stays `None`; it must be so on every replica).

    Returns:
        The sums, the same on every replica.

    """
    context = tf.distribute.get_replica_context()
    present = [gradient for gradient in gradients if gradient is not None]
    if context is not None and context.num_replicas_in_sync > 1 and present:
        present = context.all_reduce(tf.distribute.ReduceOp.SUM, present)
    present = iter([sum_repeated_rows(gradient) for gradient in present])
    return [None if gradient is None else next(present) for gradient in gradients]


class ReduceFirst:
    """Mix-in for Keras optimizers: `apply` adds gradients up over replicas, then clips, then applies.

    In replica context the gradients are the replica's shares; in cross-replica context (after `strategy.reduce`) and
    on one device they are taken as they are.
    """

    reduced_before_apply = False  # True inside LossScale, which reduces first and then calls this optimizer

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        n_replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if n_replicas > 1 and getattr(self, "gradient_accumulation_steps", None):
            raise BadInput(
                f"{type(self).__name__}(gradient_accumulation_steps={self.gradient_accumulation_steps}) on "
                f"{n_replicas} replicas: Keras would reduce inside a branch, which TensorFlow refuses in graph mode. "
                "Use tfdistedu.step.accumulate.make_accumulating_step."
            )

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Reduce, clip, apply.

        Args:
            grads: This replica's gradients, in the order of the variables.
            trainable_variables: The variables; may be left out once the optimizer is built.

        Raises:
            BadInput: `ema_overwrite_frequency` in a graph on more than one replica.

        """
        context = tf.distribute.get_replica_context()
        n_replicas = 1 if context is None else context.num_replicas_in_sync
        if n_replicas > 1 and getattr(self, "ema_overwrite_frequency", None) and not tf.executing_eagerly():
            raise BadInput(
                f"{type(self).__name__}(ema_overwrite_frequency={self.ema_overwrite_frequency}) on {n_replicas} "
                "replicas: Keras would overwrite the weights inside a branch, which TensorFlow refuses in graph mode. "
                "Use tfdistedu.step.cross_replica.make_cross_replica_step, or leave it out and call "
                "optimizer.finalize_variable_values at the end."
            )
        if not self.reduced_before_apply:
            grads = all_reduce_sum(list(grads))
        super().apply(grads, trainable_variables)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return list(grads_and_vars)  # done in apply, before Keras clips


@functools.cache
def reduce_first(optimizer_class: type) -> type:
    """Make a Keras optimizer class reduce before it clips.

    Args:
        optimizer_class: Any class of `keras.optimizers`, but `LossScaleOptimizer` (see `tfdistedu.step.precision`).

    Returns:
        A subclass with the same constructor, registered for saving; the same class for a second call.

    Raises:
        BadInput: Not a Keras optimizer class, or the loss-scaling wrapper.

    Example:
        >>> Lion = reduce_first(keras.optimizers.Lion)
        >>> float(Lion(1e-3, clipnorm=1.0).clipnorm)
        1.0

    """
    if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, keras.optimizers.Optimizer)):
        raise BadInput(f"reduce_first takes a class of keras.optimizers, not {optimizer_class!r}.")
    if issubclass(optimizer_class, keras.optimizers.LossScaleOptimizer):
        raise BadInput("LossScaleOptimizer: use tfdistedu.step.precision.LossScale around a reduce_first optimizer.")
    if issubclass(optimizer_class, ReduceFirst):
        return optimizer_class
    made = type(optimizer_class.__name__, (ReduceFirst, optimizer_class), {"__doc__": optimizer_class.__doc__})
    made.__module__ = __name__
    return keras.saving.register_keras_serializable(package="tfdistedu")(made)


SGD = reduce_first(keras.optimizers.SGD)
Adam = reduce_first(keras.optimizers.Adam)
AdamW = reduce_first(keras.optimizers.AdamW)
Adagrad = reduce_first(keras.optimizers.Adagrad)
RMSprop = reduce_first(keras.optimizers.RMSprop)
