"""The private names of TensorFlow and Keras that this package uses: on the day one goes, this says where to look."""

from __future__ import annotations

import inspect

import keras
import pytest
import tensorflow as tf

from tests.traps.oracle import per_replica


@pytest.mark.upstream
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "LossScaleOptimizer"])
def test_every_optimizer_reduces_in_a_method_that_step_optimizer_switches_off(name):
    method = getattr(getattr(keras.optimizers, name), "_all_reduce_sum_gradients", None)
    assert method is not None, (
        "tfdistedu/step/optimizer.py: ReduceFirst must switch off Keras's own reduction elsewhere"
    )
    assert list(inspect.signature(method).parameters) == ["self", "grads_and_vars"]


@pytest.mark.upstream
def test_apply_calls_that_method_once_with_all_pairs_and_goes_on_with_what_it_gives(upstream_mirrored):
    # That the name exists is not enough: were it no longer called, gradients would be added up twice.
    strategy, calls = upstream_mirrored(2), []

    class Listens(keras.optimizers.SGD):
        def _all_reduce_sum_gradients(self, grads_and_vars):
            pairs = list(grads_and_vars)
            calls.append(len(pairs))
            return [(tf.ones_like(gradient), variable) for gradient, variable in pairs]

    with strategy.scope():
        weights = [keras.Variable([0.0]), keras.Variable([0.0])]
        optimizer = Listens(0.5)
        optimizer.build(weights)
    gradient = per_replica(strategy, [[8.0], [9.0]])
    strategy.run(lambda mine: optimizer.apply([mine, mine], weights), args=(gradient,))
    assert calls == [2, 2]  # once on each replica
    assert [w.numpy().tolist() for w in weights] == [[-0.5], [-0.5]]


@pytest.mark.upstream
def test_tensorflow_wakes_in_the_method_and_shows_it_in_the_flag_that_quiet_reads(fresh_processes):
    code = """
import tensorflow as tf
from tensorflow.python.eager import context
woken = []
original = context.Context.ensure_initialized
def ensure_initialized(self):
    woken.append(context._context._initialized)
    return original(self)
context.Context.ensure_initialized = ensure_initialized
assert not getattr(context._context, "_initialized", False)
tf.config.list_physical_devices()
assert not woken, "listing physical devices woke it"
tf.constant(1)
print(woken[0], context._context._initialized)
"""
    finished = fresh_processes.run(code)
    assert finished.stdout == "False True\n", f"tfdistedu/quiet.py: another way to know is needed\n{finished.stderr}"


def test_quiet_knows_before_and_after_and_takes_its_wrapper_off(fresh_processes):
    code = """
from tfdistedu.quiet import import_tensorflow, is_awake, who_woke_tensorflow
tf = import_tensorflow()
from tensorflow.python.eager import context
asleep = is_awake(), hasattr(context.Context.ensure_initialized, "remembers_the_waker")
woken = tf.constant(1)
print(*asleep, is_awake(), hasattr(context.Context.ensure_initialized, "remembers_the_waker"))
print("woken = tf.constant(1)" in who_woke_tensorflow())
"""
    finished = fresh_processes.run(code)
    assert finished.stdout == "False True True False\nTrue\n", finished.stderr


@pytest.mark.upstream
def test_results_on_several_devices_can_be_put_together_as_cross_device_does(upstream_mirrored):
    from tensorflow.python.distribute import cross_device_ops, distribute_utils, values

    strategy = upstream_mirrored(2)
    parts = []
    for device in strategy.extended.worker_devices:
        with tf.device(device):
            parts.append(tf.constant(1.0) + len(parts))
    together = distribute_utils.regroup(tuple(parts), wrap_class=values.Mirrored)
    # Each replica must find its own copy again: that the names exist is not enough.
    assert [float(copy) for copy in strategy.experimental_local_results(together)] == [1.0, 2.0]
    assert list(cross_device_ops.get_devices_from(together)) == list(strategy.extended.worker_devices)
