"""A plan of shards reads each file exactly once, or says before the start why it cannot (R19)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdistedu.data.shards import POLICIES, plan_shards
from tfdistedu.errors import BadInput


@given(st.integers(0, 30), st.integers(1, 9), st.sampled_from([None, *POLICIES]))
def test_each_file_is_read_once_and_nobody_has_none(n_files, n_workers, policy):
    files = [f"part-{number}" for number in range(n_files)]
    if policy == "FILE" and n_files < n_workers:
        with pytest.raises(BadInput, match=rf"{n_files} file\(s\) for {n_workers} workers: with FILE some would read"):
            plan_shards(files, n_workers, policy)
        return
    plan = plan_shards(files, n_workers, policy)
    assert len(plan.files) == n_workers
    if plan.policy == "FILE":
        assert sorted(name for share in plan.files for name in share) == sorted(files)
        sizes = [len(share) for share in plan.files]
        assert min(sizes) >= 1
        assert max(sizes) - min(sizes) <= 1
    else:
        assert all(list(share) == files for share in plan.files)
    assert policy is None or plan.policy == policy
    if policy is None:
        assert (plan.policy == "FILE") == (n_files >= n_workers)


def test_it_deals_files_out_as_tensorflow_does():
    """A plan of one's own that TensorFlow does not follow would be worth nothing."""
    from tfdistedu.quiet import import_tensorflow

    tf = import_tensorflow()
    files = [f"part-{number}" for number in range(7)]
    for worker, share in enumerate(plan_shards(files, 3).files):
        dealt = tf.data.Dataset.from_tensor_slices(files).shard(3, worker)
        assert [name.decode() for name in dealt.as_numpy_iterator()] == list(share)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((["a"], 0), "at least one worker, not 0"),
        ((["a"], 1, "AUTO"), "policy='AUTO'"),
        ((["a", "b", "a"], 2), "a is named twice"),
    ],
)
def test_what_cannot_be_is_said(arguments, says):
    with pytest.raises(BadInput, match=says):
        plan_shards(*arguments)
