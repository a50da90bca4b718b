"""In graph mode a full bucket travels while the backward pass goes on: shown by order, not by a clock."""

from __future__ import annotations

import pytest

from tfdistedu.cluster import LocalCluster
from tfdistedu.links import new_address, new_token

N_LAYERS = 4


def first_gradient_waits(address, token, bucket_bytes, patience):
    """Hold the gradient that comes last until bucket 0 has been reduced; return whether that happened in time."""
    import json
    import os
    import threading

    from tfdistedu.links import join
    from tfdistedu.quiet import import_tensorflow

    tf = import_tensorflow()
    from tfdistedu.synchronous.from_scratch import FromScratchStrategy

    rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    left, in_time = threading.Event(), []

    def hear(what, bucket, seconds):
        if (what, bucket) == ("end", 0):
            left.set()

    def hold(gradient):
        in_time.append(left.wait(patience))
        return gradient

    with join(rank, 2, address, token, deadline=30.0) as comm:
        strategy = FromScratchStrategy(comm, bucket_bytes, bucket_bytes, trace=hear)
        weights = [tf.Variable(tf.eye(4)) for _ in range(N_LAYERS)]

        def on_replica():
            with tf.GradientTape() as tape:
                h = tf.ones((1, 4))
                for weight in weights:
                    h = h @ weight
            first, *others = tape.gradient(h, weights)
            # Not stateful: calls that are would be put in one row with the buckets'.
            held = tf.numpy_function(hold, [first], tf.float32, stateful=False)
            held.set_shape(first.shape)
            return tf.distribute.get_replica_context().all_reduce("SUM", [held, *others])

        sums = tf.function(lambda: strategy.run(on_replica), autograph=False)()
        return in_time, [float(tf.reduce_sum(each)) for each in sums]


@pytest.mark.parametrize(("bucket_bytes", "patience", "leaves_early"), [(64, 20.0, True), (1 << 20, 0.5, False)])
def test_the_first_bucket_is_reduced_before_the_last_gradient_is_there(bucket_bytes, patience, leaves_early):
    # 64 bytes: a bucket for each gradient. 1 MiB: one for all, which cannot leave early; so the test can fail.
    with LocalCluster(workers=2, deadline=90) as cluster:
        found = cluster.run(first_gradient_waits, new_address(), new_token(), bucket_bytes, patience)
    for task, (in_time, sums) in found.items():
        assert in_time == [leaves_early], task
        assert sums == [32.0] * N_LAYERS, task  # 16 ones on each of two ranks
