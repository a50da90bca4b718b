"""What does it cost to run a training step eagerly, where a breakpoint stops in it?

The same step, twice: as a `tf.function`, and eagerly. Both do the same updates, so their weights are compared too.
One call of each is timed in turn, so that a busy moment of the machine hits both; the medians are compared.

    graph  eager  graph  eager  graph  eager ...        median of each, ratio of the medians

Cost: some seconds. Left out: large models, where the arithmetic outweighs the calls and the ratio comes down.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from tfdistedu.data.batches import on_replicas
from tfdistedu.devices import mirrored_strategy
from tfdistedu.errors import BadInput
from tfdistedu.models import digits_mlp
from tfdistedu.step.optimizer import SGD
from tfdistedu.step.replica import make_train_step


def measure(n_replicas: int = 2, rounds: int = 15, global_batch: int = 64, warm_up: int = 2) -> dict[str, Any]:
    """Time the step of the digits' perceptron, as a graph and eagerly.

    Args:
        n_replicas: Replicas, as for `tfdistedu.devices.mirrored_strategy`.
        rounds: Timed steps of each; at least 1.
        global_batch: Examples in a global batch, drawn at random.
        warm_up: Steps of each before the clock starts; at least 1, for the first one traces.

    Returns:
        `graph_seconds` and `eager_seconds`, medians of one step; `ratio`, eager to graph; `max_weight_difference`
        between the two models at the end; `replicas` and `rounds`.

    Raises:
        BadInput: No round, or no warm-up.

    """
    if rounds < 1 or warm_up < 1:
        raise BadInput(f"measure: rounds and warm_up are at least 1, not {rounds} and {warm_up}.")
    strategy = mirrored_strategy(n_replicas)
    models, steps, seconds = {}, {}, {"graph": [], "eager": []}
    for way in seconds:
        with strategy.scope():
            models[way], optimizer = digits_mlp(), SGD(0.1, momentum=0.9)
        loss = "mse"  # against ten numbers: what is learned does not matter here
        steps[way] = make_train_step(strategy, models[way], optimizer, loss, graph=way == "graph")
    draw = np.random.default_rng(0).random
    batch = on_replicas(strategy, (draw((global_batch, 64), np.float32), draw((global_batch, 10), np.float32)))
    for turn in range(warm_up + rounds):
        for way, step in steps.items():
            start = time.perf_counter()
            float(step(batch))  # reading the loss waits for the step
            if turn >= warm_up:
                seconds[way].append(time.perf_counter() - start)
    graph, eager = (statistics.median(seconds[way]) for way in ("graph", "eager"))
    pairs = zip(models["graph"].variables, models["eager"].variables, strict=True)
    return {
        "graph_seconds": graph,
        "eager_seconds": eager,
        "ratio": eager / graph,
        "max_weight_difference": max(float(np.abs(a.value.numpy() - b.value.numpy()).max()) for a, b in pairs),
        "replicas": n_replicas,
        "rounds": rounds,
    }
