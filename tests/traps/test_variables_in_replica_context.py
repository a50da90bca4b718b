"""Variables assigned inside `strategy.run`: what each kind of synchronisation and aggregation makes of two values."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.traps.oracle import on_each_replica, per_replica, right, still_wrong

START, GIVEN = 10.0, [1.0, 2.0]
NONE, SUM, MEAN, FIRST = (
    tf.VariableAggregation.NONE,
    tf.VariableAggregation.SUM,
    tf.VariableAggregation.MEAN,
    tf.VariableAggregation.ONLY_FIRST_REPLICA,
)
ON_READ = tf.VariableSynchronization.ON_READ


def assigned(strategy, make, graph):
    """Assign another value on each replica; gives the variable."""
    with strategy.scope():
        variable = make()

    def assign(mine):
        variable.assign(mine)

    def run(values):
        strategy.run(assign, args=(values,))

    (tf.function(run, autograph=False) if graph else run)(per_replica(strategy, GIVEN))
    return variable


@pytest.mark.upstream
@pytest.mark.parametrize("graph", [True, False])
@still_wrong('TensorFlow once refused ("You must specify an aggregation method"); now the copies drift apart silently')
@pytest.mark.parametrize("make", [tf.Variable, keras.Variable], ids=["tf", "keras"])
def test_a_variable_without_aggregation_stays_equal_on_all_replicas(upstream_mirrored, make, graph):
    strategy = upstream_mirrored(2)
    try:
        copies = on_each_replica(strategy, assigned(strategy, lambda: make(START), graph))
    except ValueError:
        return  # the old error is right too
    right([copies[0] - copies[1]], right=[0.0], known_wrong=[GIVEN[0] - GIVEN[1]])


@pytest.mark.upstream
@pytest.mark.parametrize(
    ("aggregation", "expected"), [(SUM, sum(GIVEN)), (MEAN, np.mean(GIVEN)), (FIRST, GIVEN[0])], ids=str
)
def test_an_aggregation_makes_one_value_that_all_replicas_hold(upstream_mirrored, aggregation, expected):
    strategy = upstream_mirrored(2)
    variable = assigned(strategy, lambda: tf.Variable(START, aggregation=aggregation), graph=False)
    assert on_each_replica(strategy, variable) == [expected] * 2


@pytest.mark.upstream
@pytest.mark.parametrize(
    ("aggregation", "expected"), [(SUM, sum(GIVEN)), (MEAN, np.mean(GIVEN)), (FIRST, GIVEN[0])], ids=str
)
def test_synchronised_on_read_each_replica_keeps_its_own_and_reading_outside_aggregates(
    upstream_mirrored, aggregation, expected
):
    strategy = upstream_mirrored(2)
    variable = assigned(
        strategy, lambda: tf.Variable(START, synchronization=ON_READ, aggregation=aggregation), graph=False
    )
    assert on_each_replica(strategy, variable) == GIVEN
    assert variable.read_value().numpy() == expected


@pytest.mark.upstream
@pytest.mark.xfail(strict=True, raises=ValueError, reason="ON_READ with NONE can be written, and not be read outside")
def test_synchronised_on_read_without_aggregation_can_be_read_outside(upstream_mirrored):
    variable = assigned(
        upstream_mirrored(2), lambda: tf.Variable(START, synchronization=ON_READ, aggregation=NONE), graph=False
    )
    variable.read_value()


@pytest.mark.upstream
def test_updated_outside_of_run_every_variable_is_equal_on_all_replicas(upstream_mirrored):
    strategy = upstream_mirrored(2)
    with strategy.scope():
        variable = tf.Variable(START)
    variable.assign(GIVEN[1])
    assert on_each_replica(strategy, variable) == [GIVEN[1]] * 2
