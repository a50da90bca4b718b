r"""How does the learning rate follow the batch, and the updates?

Four replicas with 64 examples each take a global batch of 256: a step averages over four times the examples, so there
are a fourth of the steps. The *linear scaling rule* makes each of them four times as long [1]. In the first epochs,
while the weights change quickly, such steps are too long: so the rate *warms up* [1], then falls along a cosine [2]:

    peak            __
                 __/  \__
              __/        \___            one point an optimizer *update*: not a micro-step of accumulation,
    start  __/               \_____      not a replica's share
           0     warm_up            total

Equality with one device asks for none of this: the same global batch takes the same rate. It is for *larger* batches.

Cost: none. Left out: rates by layer (LARS), restarts.

[1] P. Goyal et al.: Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour, sections 2.1 and 2.2. 2017.
[2] I. Loshchilov, F. Hutter: SGDR: Stochastic Gradient Descent with Warm Restarts, equation 5, one period. ICLR 2017.
"""

from __future__ import annotations

import math
from typing import Any

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)


def scaled_rate(rate: float, batch: int, global_batch: int) -> float:
    """Scale a learning rate that was found for one batch size to another, linearly.

    Args:
        rate: The learning rate that works for `batch`.
        batch: Examples in the batch that it was found with.
        global_batch: Examples of one *update* now: over all replicas, and over all micro-steps of accumulation.

    Returns:
        `rate * global_batch / batch` (Goyal et al. 2017, section 2.1).

    Raises:
        BadInput: A batch without examples, or a rate that is not positive.

    Example:
        >>> scaled_rate(0.1, batch=64, global_batch=4 * 64)
        0.4

    """
    if batch < 1 or global_batch < 1 or not rate > 0:
        raise BadInput(f"scaled_rate: rate {rate}, batch {batch} and global_batch {global_batch} must be positive.")
    return rate * global_batch / batch


@keras.saving.register_keras_serializable(package="tfdistedu")
class WarmUpCosine(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that rises linearly from `start` to `peak`, then falls along half a cosine to `final`.

    Args:
        start: Rate of the first update. Goyal et al. take the rate before scaling.
        peak: Rate of update number `warm_up` (the first is 0).
        warm_up: Updates on the way up; 0 starts at the peak.
        total: Updates until `final` is reached; from there on it stays.
        final: The last rate.

    Raises:
        BadInput: Negative rates, or not 0 <= warm_up < total.

    Example:
        >>> schedule = WarmUpCosine(start=0.1, peak=0.4, warm_up=3, total=7)
        >>> [round(float(schedule(update)), 4) for update in range(9)]
        [0.1, 0.2, 0.3, 0.4, 0.3414, 0.2, 0.0586, 0.0, 0.0]

    """

    def __init__(self, start: float, peak: float, warm_up: int, total: int, final: float = 0.0):
        super().__init__()
        if min(start, peak, final) < 0 or not 0 <= warm_up < total:
            raise BadInput(
                f"WarmUpCosine(start={start}, peak={peak}, warm_up={warm_up}, total={total}, final={final}): "
                "rates are not negative, and 0 <= warm_up < total, in optimizer updates."
            )
        self.start, self.peak, self.warm_up, self.total, self.final = start, peak, warm_up, total, final

    def __call__(self, step: Any) -> tf.Tensor:
        """Give the rate of one update.

        Args:
            step: Updates before this one: `optimizer.iterations`.

        Returns:
            The rate, a scalar of Keras's float type.

        """
        dtype = keras.config.floatx()
        update = keras.ops.cast(step, dtype)
        up = self.start + (self.peak - self.start) * update / max(self.warm_up, 1)
        progress = keras.ops.clip((update - self.warm_up) / (self.total - self.warm_up), 0.0, 1.0)
        down = self.final + (self.peak - self.final) * (1.0 + keras.ops.cos(math.pi * progress)) / 2.0
        return keras.ops.where(update < self.warm_up, up, down)

    def get_config(self) -> dict[str, Any]:
        """Give what `from_config` makes an equal schedule from.

        Returns:
            The arguments of the constructor.

        """
        return {name: getattr(self, name) for name in ("start", "peak", "warm_up", "total", "final")}
