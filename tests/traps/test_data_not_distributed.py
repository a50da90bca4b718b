"""Data: a dataset that was not distributed gives every replica the whole batch."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.traps.oracle import on_each_replica, right, still_wrong

N, EXAMPLES, BATCH = 4, 10, 8


def times_seen(strategy, batches):
    """Count how often each example arrived on any replica."""
    seen = [on_each_replica(strategy, strategy.run(tf.identity, args=(batch,))) for batch in batches]
    return np.bincount(np.concatenate([part for parts in seen for part in parts]), minlength=EXAMPLES)


@pytest.mark.upstream
@still_wrong("strategy.run hands a plain tensor to every replica whole, and says nothing")
def test_a_plain_dataset_under_run_is_seen_once(upstream_mirrored):
    got = times_seen(upstream_mirrored(N), tf.data.Dataset.range(EXAMPLES).batch(BATCH))
    right(got, right=np.ones(EXAMPLES), known_wrong=np.full(EXAMPLES, N))


@pytest.mark.upstream
def test_a_distributed_dataset_is_seen_once_also_ragged(upstream_mirrored):
    strategy = upstream_mirrored(N)
    batches = strategy.experimental_distribute_dataset(tf.data.Dataset.range(EXAMPLES).batch(BATCH))
    np.testing.assert_array_equal(times_seen(strategy, batches), np.ones(EXAMPLES))


def test_our_loop_hands_each_example_out_once(strategy_with):
    from tfdistedu.synchronous.loop import distribute

    strategy = strategy_with(N)
    batches = distribute(strategy, tf.data.Dataset.range(EXAMPLES).batch(BATCH))
    np.testing.assert_array_equal(times_seen(strategy, batches), np.ones(EXAMPLES))


def test_our_step_refuses_a_batch_that_was_not_distributed(strategy_with):
    from tfdistedu.errors import BadInput
    from tfdistedu.models import digits_mlp
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step

    strategy = strategy_with(N)
    with strategy.scope():
        model, optimizer = digits_mlp(hidden=2), SGD(0.1)
    step = make_train_step(strategy, model, optimizer, "mse")
    with pytest.raises(BadInput, match=r"not distributed.*same examples"):
        step((tf.zeros((8, 64)), tf.zeros((8, 10))))
