"""Eager execution does the same work, at a price; and a breakpoint stops in it, on every replica."""

from __future__ import annotations

import json
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.small import X, Y, mlp
from tfdistedu.bench.eager import measure
from tfdistedu.data.batches import on_replicas
from tfdistedu.errors import BadInput
from tfdistedu.step.optimizer import SGD
from tfdistedu.step.replica import make_train_step


def test_the_price_of_eager_is_measured_on_the_same_work(strategy_with):
    strategy_with(2)
    result = measure(n_replicas=2, rounds=5)
    # float32, seven steps: the graph may fuse or reorder sums, 1e-7 each.
    assert result["max_weight_difference"] < 1e-5
    assert result["ratio"] == result["eager_seconds"] / result["graph_seconds"]
    assert result["ratio"] > 1  # 17 on two cores; each operation goes through Python
    for wrong in ({"rounds": 0}, {"warm_up": 0}):
        with pytest.raises(BadInput, match="at least 1"):
            measure(**wrong)


def loss_with_a_breakpoint(y, predictions):
    breakpoint()
    return keras.ops.mean((y - predictions) ** 2, axis=-1)


def run_with_hook(strategy, graph, monkeypatch):
    """Give what a debugger would find at each stop: the replica, the labels there, whether they are numbers."""
    stops = []

    def hook(*_, **__):
        frame = sys._getframe(1)
        while "predictions" not in frame.f_locals:  # in a graph the function that runs is a generated copy
            frame = frame.f_back
        y = frame.f_locals["y"]
        replica = tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group)
        concrete = hasattr(y, "numpy") and tf.executing_eagerly()
        stops.append((int(replica), concrete, y.numpy().tolist() if concrete else None))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    with strategy.scope():
        model, optimizer = mlp(), SGD(0.1)
    step = make_train_step(strategy, model, optimizer, loss_with_a_breakpoint, graph=graph)
    for _ in range(2):
        step(on_replicas(strategy, (X[:5].astype("float32"), Y[:5].astype("float32"))))
    return stops


def test_eagerly_a_breakpoint_stops_once_a_replica_and_step_with_that_replicas_numbers(strategy_with, monkeypatch):
    stops = run_with_hook(strategy_with(3), False, monkeypatch)
    y = Y[:5].astype("float32").tolist()
    one_step = [(0, True, y[:2]), (1, True, y[2:4]), (2, True, y[4:])]
    assert sorted(stops[:3]) == sorted(stops[3:]) == one_step


def test_in_a_graph_it_stops_while_tracing_only_and_there_are_no_numbers(strategy_with, monkeypatch):
    """Why eager is worth its price: two steps, and the second is not seen at all."""
    stops = run_with_hook(strategy_with(2), True, monkeypatch)
    assert {(replica, concrete) for replica, concrete, _ in stops} == {(0, False), (1, False)}
    assert len(stops) == 2


SCRIPT = """
import io, sys
import numpy as np
from tfdistedu.devices import mirrored_strategy
strategy = mirrored_strategy(2)
import keras, tensorflow as tf
from tfdistedu.data.batches import on_replicas
from tfdistedu.step.optimizer import SGD
from tfdistedu.step.replica import make_train_step

def loss(y, predictions):
    breakpoint()
    return keras.ops.mean((y - predictions) ** 2, axis=-1)

with strategy.scope():
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    optimizer = SGD(0.1)
step = make_train_step(strategy, model, optimizer, loss, graph=False)
sys.stdin = io.StringIO("p y.numpy().ravel().tolist()\\nup\\nup\\nc\\n" * 2)
step(on_replicas(strategy, (np.ones((4, 1), "float32"), np.arange(4, dtype="float32")[:, None])))
print("went on")
"""


def test_the_real_debugger_prints_the_numbers_of_each_replica_and_goes_on(fresh_processes):
    finished = fresh_processes.run(SCRIPT)
    assert finished.status == 0, finished.stderr
    assert finished.stdout.count("(Pdb)") >= 8
    assert "[0.0, 1.0]" in finished.stdout
    assert "[2.0, 3.0]" in finished.stdout
    assert finished.stdout.rstrip().endswith("went on")


def test_eager_and_graph_give_the_same_loss_and_weights(strategy_with):
    weights = []
    for graph in (True, False):
        with strategy_with(2).scope():
            model, optimizer = mlp(), SGD(0.1, momentum=0.9)
        step = make_train_step(strategy_with(2), model, optimizer, "mse", graph=graph)
        losses = [float(step(on_replicas(strategy_with(2), (X[:4], Y[:4])))) for _ in range(3)]
        weights.append([*(v.value.numpy().ravel() for v in model.variables), losses])
    np.testing.assert_allclose(np.concatenate(weights[0]), np.concatenate(weights[1]), atol=1e-6)  # float32


def test_the_command_prints_the_price_and_nothing_else(fresh_processes, tmp_path):
    code = "from tfdistedu.cli import main\nmain(['bench', 'eager', '--replicas', '3', '--json', 'eager.json'])"
    finished = fresh_processes.run(code, cwd=tmp_path)
    assert (finished.status, finished.stderr) == (0, "")
    seen = json.loads((tmp_path / "eager.json").read_text())
    assert seen["replicas"] == 3
    assert seen["ratio"] == pytest.approx(seen["eager_seconds"] / seen["graph_seconds"])
    assert f"{seen['ratio']:.1f} times as long" in finished.stdout
    assert seen["max_weight_difference"] < 1e-5  # float32 rounding; one step apart would show at 1e-3
