"""Dropout: every replica draws the same mask, so that four replicas see a quarter of the randomness."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.traps.oracle import StillWrong, on_each_replica, still_wrong


@pytest.mark.upstream
@still_wrong("the seed generator's state is the same on all replicas, and nothing folds the replica's number in")
@pytest.mark.parametrize("graph", [True, False])
def test_each_replica_draws_another_mask(upstream_mirrored, graph):
    strategy = upstream_mirrored(3)
    with strategy.scope():
        layer = keras.layers.Dropout(0.5, seed=1)
        units = tf.ones((64,))  # that two masks agree by chance: 2 ** -64

    def masks():
        return strategy.run(lambda: layer(units, training=True))

    first = on_each_replica(strategy, (tf.function(masks, autograph=False) if graph else masks)())
    assert all(0 < np.count_nonzero(mask) < 64 for mask in first), "no dropout at all"
    if all(np.array_equal(mask, first[0]) for mask in first):
        raise StillWrong("three replicas, one mask")
    assert len({mask.tobytes() for mask in first}) == 3
