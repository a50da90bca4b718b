"""TensorFlow's own ring over gRPC, as `MultiWorkerMirroredStrategy` uses it, as one rank of the benchmark.

One `tf.function` for each size; tracing happens in the call that is checked, before the clock. Cost: a second to start.
Left out: NCCL, and the automatic choice, which is this ring where there are no GPUs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfdistedu.bench.ranks.block import Work


def connect() -> Any:
    """Join the other workers of TF_CONFIG.

    Returns:
        From a number of elements to the work.

    """
    import tensorflow as tf

    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    def on_replica(x: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce("SUM", tf.identity(x), options)

    reduce = tf.function(lambda x: strategy.run(on_replica, args=(x,)), autograph=False)

    def prepare(elements: int) -> Work:
        held = {}

        def fill(values: np.ndarray) -> None:
            held["x"] = tf.constant(values)

        def call() -> None:
            held["sum"] = reduce(held["x"])  # returns when the sum is there

        return Work(fill, call, lambda: held["sum"].numpy())

    return prepare
