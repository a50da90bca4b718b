"""Adding up on CPUs: the default allows one set of devices a process, and one of the others forgets a replica."""

from __future__ import annotations

import pytest

from tests.traps.oracle import StillWrong, still_wrong

# Replica r brings 2 ** r, so that the sum tells who is missing. Prints one line a strategy.
ADD_UP = """
import sys
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 5)
make_ops = {
    "default": lambda: None,
    "ReductionToOneDevice": tf.distribute.ReductionToOneDevice,
    "HierarchicalCopyAllReduce": tf.distribute.HierarchicalCopyAllReduce,
    "NcclAllReduce": tf.distribute.NcclAllReduce,
}[sys.argv[1]]

for n in map(int, sys.argv[2:]):
    strategy = tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(n)], make_ops())

    def mine():
        context = tf.distribute.get_replica_context()
        replica = tf.cast(context.replica_id_in_sync_group, tf.float32)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, 2.0 ** replica)

    sums = tf.function(lambda: strategy.run(mine), autograph=False)()
    print([int(copy) for copy in strategy.experimental_local_results(sums)], flush=True)
"""


def everyone(*numbers_of_replicas):
    return "".join(f"{[2**n - 1] * n}\n" for n in numbers_of_replicas)


@pytest.mark.upstream
@still_wrong("collective operations keep one group key a process: the second strategy joins the first one's group")
def test_two_strategies_over_different_devices_work_in_one_process(fresh_processes):
    finished = fresh_processes.run(ADD_UP, ("default", "4", "2"), timeout=60)
    if "is joining a group with size2, but that group has size 4" in finished.stderr:
        assert finished.stdout == everyone(4)
        raise StillWrong("the second strategy fails")
    assert (finished.status, finished.stdout) == (0, everyone(4, 2)), finished.stderr


@pytest.mark.upstream
@still_wrong("after that, strategies that worked before fail too, until the process ends")
def test_a_strategy_that_worked_works_again_after_another_one_failed(fresh_processes):
    again = ADD_UP.replace("for n in map", "four = None\nfor n in map").replace(
        "    sums = tf.function(lambda: strategy.run(mine), autograph=False)()\n",
        "    try:\n"
        "        sums = tf.function(lambda: strategy.run(mine), autograph=False)()\n"
        "    except tf.errors.OpError as error:\n"
        "        print(n, type(error).__name__, flush=True)\n"
        "        continue\n",
    )
    finished = fresh_processes.run(again, ("default", "4", "2", "4"), timeout=60)
    assert finished.status == 0, finished.stderr
    if finished.stdout == everyone(4) + "2 InternalError\n4 InternalError\n":
        raise StillWrong(finished.stdout)
    assert finished.stdout == everyone(4, 2, 4)


@pytest.mark.upstream
def test_reduction_to_one_device_adds_up_for_any_sequence_of_strategies(fresh_processes):
    finished = fresh_processes.run(ADD_UP, ("ReductionToOneDevice", "4", "2", "3", "5", "4"), timeout=60)
    assert (finished.status, finished.stdout) == (0, everyone(4, 2, 3, 5, 4)), finished.stderr


def test_our_factory_adds_up_for_any_sequence_of_strategies(fresh_processes):
    code = """
from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus
virtual_cpus(5)
for n in (4, 2, 3, 5, 4):
    strategy = mirrored_strategy(n)
    mine = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(2 ** context.replica_id_in_sync_group)
    )
    add = lambda value: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)
    print([int(copy) for copy in strategy.experimental_local_results(strategy.run(add, args=(mine,)))])
"""
    finished = fresh_processes.run(code, timeout=60)
    assert (finished.status, finished.stdout) == (0, everyone(4, 2, 3, 5, 4)), finished.stderr


@pytest.mark.upstream
@still_wrong("it copies in pairs, and leaves out the last replica of an odd number")
@pytest.mark.parametrize("n", [3, 5])
def test_hierarchical_copy_adds_up_all_of_an_odd_number_of_replicas(fresh_processes, n):
    finished = fresh_processes.run(ADD_UP, ("HierarchicalCopyAllReduce", str(n)), timeout=60)
    assert finished.status == 0, finished.stderr
    if finished.stdout == f"{[2 ** (n - 1) - 1] * n}\n":
        raise StillWrong(finished.stdout)
    assert finished.stdout == everyone(n)


@pytest.mark.upstream
def test_hierarchical_copy_adds_up_all_of_an_even_number_of_replicas(fresh_processes):
    finished = fresh_processes.run(ADD_UP, ("HierarchicalCopyAllReduce", "2", "4"), timeout=60)
    assert (finished.status, finished.stdout) == (0, everyone(2, 4)), finished.stderr


@pytest.mark.upstream
@still_wrong("NcclAllReduce has kernels for GPUs alone, and is refused in the first step only")
def test_nccl_adds_up_on_cpus(fresh_processes):
    finished = fresh_processes.run(ADD_UP, ("NcclAllReduce", "2"), timeout=60)
    if "No OpKernel was registered to support Op 'NcclAllReduce'" in finished.stderr:
        raise StillWrong(finished.stderr[-300:])
    assert (finished.status, finished.stdout) == (0, everyone(2)), finished.stderr


def test_our_factory_refuses_what_forgets_a_replica_and_what_has_no_kernel(strategy_with):
    from tfdistedu.devices import mirrored_strategy, tf
    from tfdistedu.errors import BadInput

    strategy_with(2)  # the CPU is split
    with pytest.raises(BadInput, match=r"3 replicas.*leaves out the last"):
        mirrored_strategy(3, tf.distribute.HierarchicalCopyAllReduce())
    with pytest.raises(BadInput, match="NcclAllReduce works between GPUs only"):
        mirrored_strategy(2, tf.distribute.NcclAllReduce())
    assert mirrored_strategy(4, tf.distribute.HierarchicalCopyAllReduce()).num_replicas_in_sync == 4
