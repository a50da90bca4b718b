"""Each example exactly once, whatever the sizes; and the rule of replica batches against what TensorFlow does."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfdistedu.data.audit import audit
from tfdistedu.data.batches import replica_batch_sizes
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()


@settings(max_examples=40)
@given(n_examples=st.integers(1, 30), batch_size=st.integers(1, 13), n_replicas=st.integers(1, 4))
@example(n_examples=1, batch_size=4, n_replicas=4)  # three replicas without examples
@example(n_examples=13, batch_size=10, n_replicas=4)  # 3 3 3 1, then 1 1 1 0
def test_each_example_is_seen_once_and_falls_on_the_replica_that_the_rule_says(
    strategy_with, n_examples, batch_size, n_replicas
):
    report = audit(strategy_with(n_replicas), tf.data.Dataset.range(n_examples).batch(batch_size), n_examples)
    assert report.ok, str(report)
    assert report.once == list(range(n_examples))
    # Not only how many but which: the rule is applied to each global batch, in order.
    expected = [[] for _ in range(n_replicas)]
    for start in range(0, n_examples, batch_size):
        sizes = replica_batch_sizes(min(batch_size, n_examples - start), n_replicas)
        for replica, size in enumerate(sizes):
            expected[replica] += range(start, start + size)
            start += size
    assert [list(seen) for seen in report.replicas] == expected
