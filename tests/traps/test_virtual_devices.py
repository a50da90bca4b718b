"""Virtual devices: TensorFlow fixes them when it wakes, and sees one CPU until it is told otherwise."""

from __future__ import annotations

import pytest

from tests.traps.oracle import StillWrong, still_wrong

SPLIT = """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
{before}
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
{between}
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * {again})
print(len(tf.config.list_logical_devices("CPU")))
"""


@pytest.mark.upstream
@still_wrong("the error does not say what woke TensorFlow")
def test_splitting_after_a_tensor_names_what_woke_tensorflow(fresh_processes):
    finished = fresh_processes.run(SPLIT.format(before="woken = tf.constant(1)", between="", again=4))
    assert finished.status == 1
    last = finished.stderr.strip().splitlines()[-1]
    if last == "RuntimeError: Virtual devices cannot be modified after being initialized":
        raise StillWrong(last)
    assert "tf.constant(1)" in last


def test_ours_names_what_woke_tensorflow(fresh_processes):
    code = """
from tfdistedu.devices import tf, virtual_cpus
woken = tf.constant(1)
virtual_cpus(4)
"""
    finished = fresh_processes.run(code)
    last = finished.stderr.strip().splitlines()[-1]
    assert finished.status == 1
    assert "MachineCannot" in last
    assert "woken = tf.constant(1)" in last
    assert "first thing in the program" in last


@pytest.mark.upstream
def test_the_same_split_again_is_allowed_and_another_one_is_not(fresh_processes):
    finished = fresh_processes.run(SPLIT.format(before="", between="tf.constant(1)", again=4))
    assert (finished.status, finished.stdout) == (0, "4\n"), finished.stderr
    finished = fresh_processes.run(SPLIT.format(before="", between="tf.constant(1)", again=3))
    assert "Virtual devices cannot be modified after being initialized" in finished.stderr


def test_our_set_up_cell_can_run_twice(fresh_processes):
    code = """
from tfdistedu.devices import tf, virtual_cpus
for _ in range(2):
    virtual_cpus(4)
    tf.constant(1)
print(len(tf.config.list_logical_devices("CPU")))
"""
    finished = fresh_processes.run(code)
    assert (finished.status, finished.stdout) == (0, "4\n"), finished.stderr


@pytest.mark.upstream
def test_all_cores_are_one_cpu_and_one_replica_until_it_is_split(fresh_processes):
    code = """
import tensorflow as tf
print(len(tf.config.list_physical_devices("CPU")), tf.distribute.MirroredStrategy(["CPU:0"]).num_replicas_in_sync)
"""
    assert fresh_processes.run(code).stdout == "1 1\n"
