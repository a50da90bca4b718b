"""How does training in float16 skip a step whose gradients overflowed, on all replicas or on none?

float16 ends at 65,504 and loses what is below 6e-8. So the loss is multiplied by a *scale* before the backward pass
and the gradients are divided by it after. If any of them is inf or NaN, the step is skipped and the scale is halved;
after 2,000 good steps it is doubled [1].

    replica 0: finite    replica 1: inf      Keras asks replica 0 alone: inf goes into the weights, the scale stays
                                             here: reduce first. finite + inf = inf on all, all skip, all halve

`LossScale` adds the gradients up *before* Keras looks at them. What it looks at is then the same on every replica.

Cost: the reduction carries scaled float32 gradients; an overflow in the sum of finite parts counts as one, rightly.

[1] P. Micikevicius et al.: Mixed Precision Training, section 3.2. ICLR 2018.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.guards import check_replica_context
from tfdistedu.step.optimizer import ReduceFirst, all_reduce_sum

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)


@keras.saving.register_keras_serializable(package="tfdistedu")
class LossScale(keras.optimizers.LossScaleOptimizer):
    """Loss scaling that skips a step on all replicas when any replica overflowed.

    Args:
        inner_optimizer: An optimizer of `tfdistedu.step.optimizer`, which then finds its gradients already reduced.
        **kwargs: As for `keras.optimizers.LossScaleOptimizer`: `initial_scale`, `dynamic_growth_steps`, `name`.

    Raises:
        BadInput: The inner optimizer would reduce a second time.

    Example:
        >>> optimizer = LossScale(SGD(0.1), initial_scale=1024.0)
        >>> optimizer.initial_scale
        1024.0

    """

    def __init__(self, inner_optimizer: Any, **kwargs: Any):
        if not isinstance(inner_optimizer, ReduceFirst):
            raise BadInput(
                f"LossScale({type(inner_optimizer).__name__}): the inner optimizer must not reduce a second time. "
                "Use one of tfdistedu.step.optimizer, or reduce_first(...)."
            )
        inner_optimizer.reduced_before_apply = True
        super().__init__(inner_optimizer, **kwargs)

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Reduce, look for inf and NaN, then unscale, clip and apply, or skip.

        Args:
            grads: This replica's gradients of the scaled loss.
            trainable_variables: The variables, in the same order.

        """
        check_replica_context("LossScale.apply")
        self.apply_reduced(all_reduce_sum(list(grads)), trainable_variables)

    def apply_reduced(self, grads: Any, trainable_variables: Any = None) -> None:
        """Do the same with gradients that are added up over the replicas already.

        Args:
            grads: The sums, the same on every replica.
            trainable_variables: The variables, in the same order.

        """
        super().apply(grads, trainable_variables)
