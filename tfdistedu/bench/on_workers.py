"""The demo's training in several processes: by `MultiWorkerMirroredStrategy`, by its `fit`, and by our own all-reduce.

Each task of a local cluster makes its strategy, the same model and the same data, trains, and sends home weights,
losses and the time of each epoch. The launcher itself trains nothing.

    launcher --run(train, "multi_worker")--> worker:0, worker:1 --weights, losses, times--> launcher

Cost: a second or two to start, beside the training. Left out: machines other than this one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tfdistedu.cluster.local import LocalCluster
from tfdistedu.errors import TfdisteduError
from tfdistedu.links import join, new_address, new_token

KINDS = ("multi_worker", "multi_worker_fit", "from_scratch")
DEADLINE = 300.0


def way(kind: str) -> Callable[[Any], tuple[Any, list[float]]]:
    """Make a way that trains in processes of its own.

    Args:
        kind: One of `KINDS`.

    Returns:
        A function from the demo's run to the model, with the weights of worker 0, and one mean loss an epoch.

    """

    def train(run: Any) -> tuple[Any, list[float]]:
        found = train_on_workers(kind, run.n_replicas, run.epochs, run.global_batch)
        start = run.times[0]
        for seconds in found["times"][1:]:
            run.epoch_done()
            run.times[-1] = start + seconds  # as the worker's clock had it
        if found["spread"]:
            raise TfdisteduError(f"{kind}: the workers' weights differ by {found['spread']:.1e}")
        from tfdistedu.models import digits_mlp

        model = digits_mlp()
        model.set_weights(found["weights"])
        return model, found["losses"]

    return train


def train_on_workers(kind: str, n_workers: int, epochs: int, global_batch: int) -> dict[str, Any]:
    """Train on a cluster of this machine.

    Args:
        kind: One of `KINDS`.
        n_workers: Number of processes.
        epochs: Passes over the digits.
        global_batch: Examples in a global batch.

    Returns:
        `weights` (of worker 0), `losses` (one an epoch), `times` (seconds since the start, after each epoch), and
        `spread`, the largest difference between the weights of two workers.

    Raises:
        TaskFailed: A worker failed.

    """
    with LocalCluster(n_workers, deadline=DEADLINE, echo=False, env={"TF_CPP_MIN_LOG_LEVEL": "3"}) as cluster:
        results = cluster.run(_train, kind, n_workers, epochs, global_batch, new_address(), new_token())
    first, *others = (results[task] for task in sorted(results))
    gaps = [np.abs(a - b).max() for each in others for a, b in zip(each["weights"], first["weights"], strict=True)]
    return {**first, "spread": float(max(gaps, default=0.0))}


def _train(kind: str, n_workers: int, epochs: int, global_batch: int, address: str, token: str) -> dict[str, Any]:
    if kind == "from_scratch":
        from tfdistedu.synchronous.from_scratch import FromScratchStrategy

        rank = int(os.environ["TFDISTEDU_TASK"].rpartition(":")[2])
        with join(rank, n_workers, address, token) as comm:
            result = _train_under(FromScratchStrategy(comm), kind, epochs, global_batch)
            comm.barrier()  # all leave together
            return result
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy
    from tfdistedu.synchronous.workers import leave_together

    strategy = multi_worker_strategy(n_workers)
    result = _train_under(strategy, kind, epochs, global_batch)
    leave_together(strategy)
    return result


def _train_under(strategy: Any, kind: str, epochs: int, global_batch: int) -> dict[str, Any]:
    import keras

    from tfdistedu.data.batches import batched_dataset
    from tfdistedu.data.digits import load_digits
    from tfdistedu.models import digits_mlp
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step
    from tfdistedu.synchronous.loop import train
    from tfdistedu.synchronous.multi_worker import sharded
    from tfdistedu.synchronous.multi_worker_fit import FitsOnWorkers

    digits = load_digits()
    dataset = batched_dataset((digits.x_train, digits.y_train), global_batch, shuffle_seed=0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with strategy.scope():
        model, optimizer = digits_mlp(), SGD(0.1, momentum=0.9)
        if kind == "multi_worker_fit":
            model = type("Model", (FitsOnWorkers, keras.Model), {})(model.inputs, model.outputs)
            model.compile(optimizer, loss, jit_compile=False)
    times = [time.perf_counter()]
    if kind == "multi_worker_fit":
        clock = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: times.append(time.perf_counter()))
        history = model.fit(sharded(dataset, "DATA"), epochs=epochs, shuffle=False, verbose=0, callbacks=[clock])
        losses = [float(value) for value in history.history["loss"]]
    else:
        step = make_train_step(strategy, model, optimizer, loss)
        data = dataset if kind == "from_scratch" else sharded(dataset, "DATA")
        epochs_done = train(strategy, step, data, epochs, on_epoch=lambda epoch: times.append(time.perf_counter()))
        losses = [epoch.loss for epoch in epochs_done]
    weights = [np.array(weight) for weight in model.get_weights()]
    return {"weights": weights, "losses": losses, "times": [each - times[0] for each in times]}
