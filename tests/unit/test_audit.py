"""Does the audit tell the ways apart in which examples are lost, repeated, or seen by all?"""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

from tfdistedu.data.audit import Audit, audit, with_numbers
from tfdistedu.errors import BadInput


def numbers(n=8, batch=4, **kwargs):
    return tf.data.Dataset.range(n).batch(batch, **kwargs)


def test_a_plain_dataset_is_distributed_for_you_and_a_distributed_one_taken_as_it_is(strategy_with):
    strategy = strategy_with(2)
    plain = audit(strategy, numbers(), 8)
    assert plain.replicas == ((0, 1, 4, 5), (2, 3, 6, 7))
    assert audit(strategy, strategy.experimental_distribute_dataset(numbers()), 8) == plain
    assert audit(strategy_with(1), numbers(), 8).replicas == (tuple(range(8)),)


def test_a_dataset_that_was_not_distributed_is_seen_by_every_replica(strategy_with):
    report = audit(strategy_with(3), numbers(5, 2), 5, distribute=False)
    assert (report.ok, report.repeated) == (False, dict.fromkeys(range(5), 3))
    assert report.replicas == (tuple(range(5)),) * 3
    assert "more than once: 5 3 times: 0 1 2 3 4" in str(report)
    assert audit(strategy_with(1), numbers(5, 2), 5, distribute=False).ok  # one device: nothing to distribute


def test_drop_remainder_loses_the_last_examples(strategy_with):
    report = audit(strategy_with(2), numbers(7, 4, drop_remainder=True), 7)
    assert (report.ok, report.never) == (False, [4, 5, 6])
    assert "never: 3: 4 5 6" in str(report)


def test_a_dataset_from_a_function_is_as_right_as_the_function(strategy_with):
    """It is called once a process and its batches go to the replicas in turn: here the last one has none for some."""
    strategy = strategy_with(2)
    right = audit(strategy, lambda context: numbers(8, context.get_per_replica_batch_size(4)), 8)
    assert right.ok
    assert right.replicas == ((0, 1, 4, 5), (2, 3, 6, 7))

    def shards_again(context):  # believes that it is called once a replica
        return numbers(8, 2).shard(context.num_replicas_in_sync, 0)

    assert audit(strategy, shards_again, 8).never == [2, 3, 6, 7]


def test_a_shuffle_keeps_each_example_once_and_repeat_does_not(strategy_with):
    strategy = strategy_with(2)
    shuffled = tf.data.Dataset.range(9).shuffle(9, seed=1).batch(4)
    report = audit(strategy, shuffled, 9)
    assert report.ok
    assert [*report.replicas[0], *report.replicas[1]] != list(range(9))
    assert audit(strategy, numbers(4, 4).repeat(2), 4).repeated == dict.fromkeys(range(4), 2)


def test_a_dataset_that_never_ends_needs_a_number_of_steps(strategy_with):
    strategy = strategy_with(2)
    with pytest.raises(BadInput, match="never ends"):
        audit(strategy, numbers().repeat(), 8)
    assert audit(strategy, numbers().repeat(), 8, steps=2).ok
    assert audit(strategy, numbers().repeat(), 8, steps=3).repeated == dict.fromkeys(range(4), 2)


def test_numbers_are_found_where_one_says(strategy_with):
    strategy = strategy_with(2)
    examples = tf.data.Dataset.from_tensor_slices([0.5, 1.5, 2.5])
    assert audit(strategy, with_numbers(examples).batch(2), 3).ok
    assert audit(strategy, examples.batch(2), 3, number_of=lambda x: tf.cast(x, tf.int64)).ok
    with pytest.raises(BadInput, match=r"whole numbers of shape \[replica_batch\], and got float32"):
        audit(strategy, examples.batch(2), 3)
    with pytest.raises(BadInput, match="not a list"):
        audit(strategy, [[0, 1]], 2)


def test_the_report_reads_well_and_goes_through_json():
    report = Audit(6, ((0, 1, 1), (4, 9)))
    assert str(report) == (
        "not ok: of 6 examples 2 were seen once\n"
        "  more than once: 1 2 times: 1\n"
        "  never: 3: 2 3 5\n"
        "  not in 0..5: 9\n"
        "  replica 0 saw 3: 0 1 1\n"
        "  replica 1 saw 2: 4 9"
    )
    assert json.loads(json.dumps(report.to_json())) == {
        "ok": False,
        "n_examples": 6,
        "once": 3,
        "never": [2, 3, 5],
        "repeated": [[1, 2]],
        "unknown": [9],
        "replicas": [[0, 1, 1], [4, 9]],
    }
    long = str(Audit(100, (tuple(range(100)), ())))
    assert long.splitlines()[0] == "ok: each of 100 examples was seen exactly once"
    assert long.splitlines()[1].endswith("10 11 ... (100)")
    assert long.splitlines()[2] == "  replica 1 saw 0"
