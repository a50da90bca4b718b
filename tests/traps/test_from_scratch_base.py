"""The private names that `synchronous.from_scratch` builds on. Red: TensorFlow changed a strategy's inside."""

from __future__ import annotations

import inspect

import pytest

from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()


@pytest.mark.parametrize(
    "name",
    ["_num_replicas_in_sync", "_call_for_each_replica", "_experimental_distribute_values_from_function",
     "_create_variable", "_reduce_to", "_experimental_distribute_dataset", "_distribute_datasets_from_function"],
)  # fmt: skip
def test_the_strategy_of_one_device_has_what_is_replaced(name):
    from tensorflow.python.distribute.one_device_strategy import OneDeviceExtended

    assert name in vars(OneDeviceExtended)


@pytest.mark.parametrize("name", ["_use_merge_call", "_batch_reduce_to"])
def test_every_strategy_has_what_is_replaced(name):
    from tensorflow.python.distribute.one_device_strategy import OneDeviceExtended

    assert hasattr(OneDeviceExtended, name)


def test_a_replica_context_hands_its_all_reduce_to_the_strategy():
    source = inspect.getsource(tf.distribute.ReplicaContext.all_reduce)
    assert "extended._replica_ctx_all_reduce(" in source
    assert "_use_merge_call()" in source
