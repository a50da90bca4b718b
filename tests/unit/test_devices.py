"""Devices: split before TensorFlow wakes, named who woke it, and strategies that do what they say."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfdistedu.devices import mirrored_strategy, replicas, virtual_cpus
from tfdistedu.errors import BadInput, MachineCannot


def test_the_first_cell_of_a_notebook_can_be_run_twice(fresh_processes):
    finished = fresh_processes.run(
        """
from tfdistedu.devices import virtual_cpus, tf
print(virtual_cpus(3), virtual_cpus(3))
tf.constant(1)
print(virtual_cpus(3), len(tf.config.list_logical_devices("CPU")))
"""
    )
    names = "['CPU:0', 'CPU:1', 'CPU:2']"
    assert finished.stdout.splitlines() == [f"{names} {names}", f"{names} 3"], finished.stderr


def test_before_it_wakes_another_number_may_be_chosen(fresh_processes):
    code = "from tfdistedu.devices import *\nvirtual_cpus(2), virtual_cpus(4)\n"
    code += "print(len(tf.config.list_logical_devices()))"
    assert fresh_processes.run(code).stdout == "4\n"


@pytest.mark.parametrize("waker", ["x = tf.constant(1)", "v = keras.Variable(1.0)", "tf.config.list_logical_devices()"])
def test_when_it_is_awake_the_error_names_the_line_that_woke_it(fresh_processes, waker):
    code = f"from tfdistedu.devices import virtual_cpus, tf\nimport keras\n\n{waker}\ntf.constant(2)\nvirtual_cpus(4)\n"
    finished = fresh_processes.run(code)
    assert finished.status == 1
    message = finished.stderr.splitlines()[-1]
    assert "cannot split the CPU into 4 virtual devices: TensorFlow is awake with 1" in message
    assert f"script.py:4 in <module>: {waker}" in message
    assert "Call virtual_cpus(4) as the first thing" in message


def test_when_it_woke_before_this_package_was_there_the_error_says_so(fresh_processes):
    finished = fresh_processes.run(
        "import tensorflow as tf\ntf.constant(1)\nfrom tfdistedu.devices import *\nvirtual_cpus(2)"
    )
    # The server that these processes are forked from holds the package, so it does know; what matters is a true word.
    assert "woken by" in finished.stderr.splitlines()[-1]


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "2", True, None])
@pytest.mark.parametrize("function", [virtual_cpus, replicas])
def test_a_number_of_devices_that_cannot_be_is_refused(function, wrong):
    with pytest.raises(BadInput, match=r"(virtual_cpus|replicas)\(n\): n is"):
        function(wrong)


def test_numpy_numbers_are_numbers(strategy_with):
    strategy_with(1)
    assert replicas(np.int64(2)) == ["CPU:0", "CPU:1"]
    assert mirrored_strategy(np.int64(2)).num_replicas_in_sync == 2


@pytest.mark.parametrize("wrong", [0, 2.0, None, {"CPU:0"}])
def test_what_is_neither_a_number_nor_names_is_refused(strategy_with, wrong):
    strategy_with(1)
    with pytest.raises(BadInput, match=r"replicas\(n\): n is"):
        mirrored_strategy(wrong)


def test_one_name_is_one_device_and_not_a_list_of_letters(strategy_with):
    strategy_with(1)
    assert mirrored_strategy("CPU:1").num_replicas_in_sync == 1


def test_replicas_takes_the_first_of_more_cpus_and_cannot_make_more_once_awake(fresh_processes):
    code = "from tfdistedu.devices import *\nvirtual_cpus(4)\nprint(replicas(3))\ntf.constant(1)\nprint(replicas(2))\n"
    code += "replicas(5)"
    finished = fresh_processes.run(code)
    assert finished.stdout.splitlines() == ["['CPU:0', 'CPU:1', 'CPU:2']", "['CPU:0', 'CPU:1']"]
    assert "cannot split the CPU into 5 virtual devices: TensorFlow is awake with 4" in finished.stderr


def test_gpus_are_preferred_when_there_are_enough(strategy_with, monkeypatch):
    strategy_with(1)
    listed = tf.config.list_physical_devices

    def with_two_gpus(kind=None):
        gpus = [tf.config.PhysicalDevice(f"/physical_device:GPU:{index}", "GPU") for index in range(2)]
        return gpus if kind == "GPU" else listed(kind)

    monkeypatch.setattr(tf.config, "list_physical_devices", with_two_gpus)
    assert replicas(1) == ["GPU:0"]
    assert replicas(2) == ["GPU:0", "GPU:1"]
    assert replicas(3) == ["CPU:0", "CPU:1", "CPU:2"]  # all of one kind


def test_strategies_with_four_two_and_three_replicas_work_in_one_process(fresh_processes):
    """TensorFlow's default on CPUs fails at the second: "is joining a group with size2, but that group has size 4"."""
    finished = fresh_processes.run(
        """
from tfdistedu.devices import mirrored_strategy, tf
from tfdistedu.devices import virtual_cpus
virtual_cpus(4)
for n in (4, 2, 3):
    strategy = mirrored_strategy(n)
    def one_of_each():
        context = tf.distribute.get_replica_context()
        return context.all_reduce("SUM", 10.0 ** tf.cast(context.replica_id_in_sync_group, tf.float32))
    print([float(x) for x in strategy.experimental_local_results(strategy.run(one_of_each))])
"""
    )
    assert finished.stdout.splitlines() == [str([total] * n) for n, total in ((4, 1111.0), (2, 11.0), (3, 111.0))], (
        finished.stderr
    )


def test_hierarchical_copy_is_refused_for_an_odd_number_only(strategy_with):
    strategy_with(1)
    with pytest.raises(BadInput, match="silently leaves out the last"):
        mirrored_strategy(3, tf.distribute.HierarchicalCopyAllReduce())
    assert mirrored_strategy(2, tf.distribute.HierarchicalCopyAllReduce()).num_replicas_in_sync == 2


def test_nccl_is_refused_on_cpus(strategy_with):
    strategy_with(1)
    with pytest.raises(BadInput, match="no kernel for CPUs"):
        mirrored_strategy(2, tf.distribute.NcclAllReduce())


def test_what_is_asked_for_is_used(strategy_with):
    strategy_with(1)
    ours = tf.distribute.ReductionToOneDevice()
    assert mirrored_strategy(2, ours).extended._cross_device_ops is ours
    assert type(mirrored_strategy(2).extended._cross_device_ops) is tf.distribute.ReductionToOneDevice


@pytest.mark.parametrize(
    "names",
    [["CPU:0", "CPU:2"], ["cpu:0", "/cpu:2"], ["/job:localhost/replica:0/task:0/device:CPU:0", "/device:CPU:2"]],
)
def test_devices_may_be_named_in_every_way_tensorflow_writes_them(strategy_with, names):
    strategy_with(1)
    devices = mirrored_strategy(names).extended.worker_devices
    assert [device.rsplit(":", 2)[-2:] for device in devices] == [["CPU", "0"], ["CPU", "2"]]


@pytest.mark.parametrize(
    ("names", "error", "said"),
    [
        ([], BadInput, "no devices"),
        (["CPU:0", "/cpu:0"], BadInput, "CPU:0 is named more than once"),
        (["CPU:0", "GPU:0"], BadInput, "mixes kinds"),
        (["first"], BadInput, "no device name"),
        (["CPU:0", "CPU:9"], MachineCannot, "has no CPU:9, it has CPU:0"),
        (2.0, BadInput, "a whole number of replicas"),
        (None, BadInput, "a whole number of replicas"),
        (["/job:worker/task:1/device:CPU:1", "CPU:0"], BadInput, "a device of another task"),
    ],
)
def test_devices_that_cannot_be_are_refused(strategy_with, names, error, said):
    strategy_with(1)
    with pytest.raises(error, match=said):
        mirrored_strategy(names)


def test_the_error_says_how_many_cpus_it_takes_and_offers_no_cpus_for_gpus(strategy_with):
    strategy_with(2)
    with pytest.raises(MachineCannot, match=r"no CPU:9, .*virtual_cpus\(10\)"):
        mirrored_strategy(["CPU:0", "CPU:9"])
    with pytest.raises(MachineCannot, match=r"no GPU:7, .* or give a number: without GPUs it takes CPUs"):
        mirrored_strategy(["GPU:7"])


@pytest.mark.parametrize("ops", ["nccl", tf.distribute.NcclAllReduce, tf.distribute.ReductionToOneDevice, 3])
def test_what_is_no_cross_device_operation_is_refused_before_the_first_reduction(strategy_with, ops):
    """TensorFlow takes it, and stops in the first step with "missing 1 required positional argument"."""
    strategy_with(2)
    with pytest.raises(BadInput, match=r"is an object such as tf\.distribute\.ReductionToOneDevice\(\)"):
        mirrored_strategy(2, ops)
