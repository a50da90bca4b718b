"""More replicas, and not faster: which question was asked?

"Is it faster on n replicas" has two meanings, and a table that mixes them up misleads. Both are measured here, with the
one step, in one process:

    strong scaling    the global batch is fixed:   n replicas share 256 examples       same training, sooner?
    weak scaling      the replica batch is fixed:  n replicas take 256 each            more examples a second?

In weak scaling the global batch grows with n, so an epoch has fewer steps: that is *other training*, with another best
learning rate. Virtual devices share the cores, and every step pays for the reduction: what they gain is what one small
replica left idle, never n times.

    efficiency(n) = (examples/s on n replicas) / (n * examples/s on one)        1 is ideal

Strong scaling is bounded by what stays serial [1]; weak scaling asks for more work with more hands [2].

Cost: some seconds. Steps of all settings are timed in turn, so that a busy moment hits all; medians are compared.
Left out: several machines, and where the time goes.

[1] G. Amdahl: Validity of the single processor approach to achieving large scale computing capabilities. AFIPS 1967.
[2] J. Gustafson: Reevaluating Amdahl's law. Communications of the ACM 31(5), 1988.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tfdistedu import devices
from tfdistedu.data.batches import on_replicas
from tfdistedu.errors import BadInput
from tfdistedu.models import digits_mlp
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.optimizer import SGD
from tfdistedu.step.replica import make_train_step

tf = import_tensorflow()

SCALINGS = ("strong", "weak")


class Setting(NamedTuple):
    """One line of the table.

    `scaling` is "strong" or "weak", `seconds` the median of one step, `efficiency` against one replica of the same
    scaling (1 is ideal).
    """

    scaling: str
    replicas: int
    global_batch: int
    replica_batch: float
    seconds: float
    examples_per_s: float
    efficiency: float


def measure(replicas: Sequence[int] = (1, 2, 4), batch: int = 256, rounds: int = 15) -> list[Setting]:
    """Time one training step for several numbers of replicas, in both scalings.

    Args:
        replicas: Numbers of replicas; the first must be 1, which the others are compared with.
        batch: Examples in the global batch (strong scaling), and in each replica batch (weak scaling).
        rounds: Timed steps of each setting; at least 1.

    Returns:
        One line for each scaling and number of replicas.

    Raises:
        BadInput: The numbers of replicas do not begin with 1, or batch or rounds are below 1.

    """
    if not replicas or replicas[0] != 1 or batch < 1 or rounds < 1:
        raise BadInput(
            f"measure: replicas must begin with 1 (others are compared with it), batch and rounds must be at least 1; "
            f"not {list(replicas)}, {batch}, {rounds}."
        )
    devices.replicas(max(replicas))  # splits the CPU for the largest, where there are not so many GPUs
    settings = [(scaling, n, batch if scaling == "strong" else n * batch) for scaling in SCALINGS for n in replicas]
    calls = {setting: _step(*setting[1:]) for setting in settings}
    seconds: dict[tuple, list[float]] = {setting: [] for setting in settings}
    for _ in range(rounds):
        for setting, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[setting].append(time.perf_counter() - start)
    return as_settings({setting: statistics.median(times) for setting, times in seconds.items()})


def as_settings(seconds: dict[tuple[str, int, int], float]) -> list[Setting]:
    """Turn times into lines of the table.

    Args:
        seconds: Median seconds of a step by (scaling, replicas, global batch); each scaling with one replica.

    Returns:
        One line each, in the same order.

    Example:
        >>> lines = as_settings({("strong", 1, 100): 1.0, ("strong", 4, 100): 0.5})
        >>> [(line.replica_batch, line.examples_per_s, line.efficiency) for line in lines]
        [(100.0, 100.0, 1.0), (25.0, 200.0, 0.5)]

    """
    alone = {scaling: batch / time for (scaling, n, batch), time in seconds.items() if n == 1}
    return [
        Setting(scaling, n, batch, batch / n, time, batch / time, batch / time / (n * alone[scaling]))
        for (scaling, n, batch), time in seconds.items()
    ]


def _step(n_replicas: int, global_batch: int) -> Callable[[], float]:
    strategy = devices.mirrored_strategy(n_replicas) if n_replicas > 1 else tf.distribute.get_strategy()
    with strategy.scope():
        model, optimizer = digits_mlp(), SGD(0.01, momentum=0.9)
    step = make_train_step(strategy, model, optimizer, "mse")  # against ten numbers: what is learned does not matter
    draw = np.random.default_rng(0).random
    batch = on_replicas(strategy, (draw((global_batch, 64), np.float32), draw((global_batch, 10), np.float32)))

    def call() -> float:
        return float(step(batch))  # reading the loss waits for the step

    for _ in range(2):  # the first one traces
        call()
    return call
