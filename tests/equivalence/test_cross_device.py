"""Gradients added up by our schedules inside `MirroredStrategy`: the executor's bits, and one device's weights."""

from __future__ import annotations

import numpy as np
import pytest

from tests.equivalence.test_one_device import BASE, check
from tfdistedu.collectives import all_reduce
from tfdistedu.collectives.algorithms.registry import ALGORITHMS
from tfdistedu.collectives.schedule import Schedule
from tfdistedu.collectives.verify import BrokenSchedule
from tfdistedu.devices import mirrored_strategy, tf
from tfdistedu.errors import BadInput
from tfdistedu.synchronous.cross_device import ScheduleOps

NAMES = sorted(name for name, function in ALGORITHMS.items() if function.goal == "all_reduce")
SHAPES = ((), (2,), (7,), (3, 5))  # fewer elements than chunks, and sizes that do not divide by them


def arrays_for(n, dtype="float32"):
    rng = np.random.default_rng(n)
    # Magnitudes differ by 1e4, so that almost every other order of additions gives other bits.
    scale = 1 if "int" in dtype else 10.0 ** rng.uniform(-2, 2, (len(SHAPES), n, 1))
    return [
        [np.asarray(rng.normal(size=shape) * (100 if "int" in dtype else s[0])).astype(dtype) for s in scales]
        for shape, scales in zip(SHAPES, np.broadcast_to(scale, (len(SHAPES), n, 1)), strict=True)
    ]


def reduced(strategy, rows, op, graph, known_shapes=True):
    """Reduce in replica context; return each array's copies, one a replica."""

    def on_replica(*parts):
        return tf.distribute.get_replica_context().all_reduce(op, list(parts))

    def run(*parts):
        return strategy.run(on_replica, args=parts)

    if graph:
        run = tf.function(run, autograph=False)
    if not known_shapes:
        inner = on_replica

        def on_replica(*parts):
            return inner(*[tf.raw_ops.PlaceholderWithDefault(input=p, shape=[None] * p.shape.rank) for p in parts])

    values = [
        strategy.experimental_distribute_values_from_function(
            lambda context, row=row: tf.constant(row[context.replica_id_in_sync_group])
        )
        for row in rows
    ]
    return [[copy.numpy() for copy in strategy.experimental_local_results(result)] for result in run(*values)]


def assert_bits(got, rows, name, op):
    for copies, row in zip(got, rows, strict=True):
        wanted = all_reduce(row, name, "sum" if op == "SUM" else "mean")
        assert len(copies) == len(row)
        for replica, (copy, want) in enumerate(zip(copies, wanted, strict=True)):
            assert (copy.dtype, copy.shape) == (want.dtype, want.shape)
            # Bits, not nearness: a schedule with its additions in another order is near, too.
            assert copy.tobytes() == want.tobytes(), f"{name}, {op}, shape {copy.shape}, replica {replica}"


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_gives_the_bits_of_the_plain_executor_on_every_replica(strategy_with, name, n):
    strategy_with(1)  # the CPU is split
    strategy, rows = mirrored_strategy(n, ScheduleOps(name)), arrays_for(n)
    assert_bits(reduced(strategy, rows, "SUM", graph=True), rows, name, "SUM")
    assert_bits(reduced(strategy, rows, "MEAN", graph=False), rows, name, "MEAN")


def test_bits_tell_algorithms_apart(strategy_with):
    """Else the test above would hold for an implementation that ignores its schedule."""
    strategy_with(1)
    rows = arrays_for(4)
    found = {
        b"".join(copies[0].tobytes() for copies in reduced(mirrored_strategy(4, ScheduleOps(name)), rows, "SUM", True))
        for name in NAMES
    }
    assert len(found) > 1


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64"])
def test_other_types_and_shapes_that_the_graph_does_not_know_give_these_bits_too(strategy_with, dtype):
    strategy_with(1)
    strategy, rows = mirrored_strategy(3, ScheduleOps("ring")), arrays_for(3, dtype)
    assert_bits(reduced(strategy, rows, "SUM", graph=True, known_shapes=False), rows, "ring", "SUM")


@pytest.mark.parametrize("row", range(len(SHAPES)))
def test_int32_gives_these_bits_one_by_one(strategy_with, row):
    # One by one: MirroredStrategy refuses a list of int32 tensors, whatever adds them up.
    strategy_with(1)
    rows = arrays_for(3, "int32")[row : row + 1]
    assert_bits(reduced(mirrored_strategy(3, ScheduleOps("ring")), rows, "SUM", graph=True), rows, "ring", "SUM")


@pytest.mark.parametrize("model", ["mlp", "embedding"])  # dense gradients; sparse ones with ragged counts
@pytest.mark.parametrize(("n", "name", "graph", "way"), [
    (3, "ring", True, "replica"), (4, "halving_doubling", False, "replica"), (3, "ring", True, "cross_replica"),
])  # fmt: skip
def test_training_equals_one_device(strategy_with, float64, n, name, graph, way, model):
    strategy_with(1)
    case = type(BASE)(**{**vars(BASE), "n_replicas": n, "graph": graph, "way": way, "model": model})
    check(case, mirrored_strategy(n, ScheduleOps(name)))  # batches of 5, 2 and 1: ragged, and replicas without examples


def test_an_unknown_name_a_schedule_for_others_and_one_that_forgets_a_replica_are_refused(strategy_with):
    strategy_with(1)
    with pytest.raises(BadInput, match="Did you mean ring"):
        ScheduleOps("rings")
    with pytest.raises(BadInput, match="for 2 ranks, and there are 3"):
        reduced(mirrored_strategy(3, ScheduleOps(ALGORITHMS["ring"](2))), arrays_for(3), "SUM", graph=False)
    forgets = Schedule("forgets", 3, 1, [[(0, 1, 0, True), (1, 0, 0, True)]])
    with pytest.raises(BrokenSchedule, match=r"rank [02]"):
        reduced(mirrored_strategy(3, ScheduleOps(forgets)), arrays_for(3), "SUM", graph=False)
