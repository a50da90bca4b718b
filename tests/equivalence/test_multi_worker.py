"""Several workers, real processes: the one step and the one loop give one device's weights, in graph mode and eagerly.

A cluster costs more than a case, so each cluster does all cases of its number of workers in one call.
"""

from __future__ import annotations

import numpy as np
import pytest

from tfdistedu.cluster import LocalCluster

# As for replicas in one process: float64, a few steps of size 1; mistakes are 1e-3 and more.
TOLERANCE = 1e-12
SIZES = (8, 7, 3, 1, 5)  # on 3 workers: ragged, and workers without examples
N_EXAMPLES, GLOBAL_BATCH = 31, 6  # no multiple of each other, nor of the workers


def run_all_cases(n_workers):
    """Train in every way; give each way's weights and what the loop told, by name. Without workers: one device."""
    import numpy as np

    from tfdistedu.quiet import import_tensorflow

    tf = import_tensorflow()
    import keras

    from tfdistedu.data.batches import on_replicas
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step
    from tfdistedu.synchronous.loop import evaluate, train
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy, sharded, share_of_worker

    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    strategy = multi_worker_strategy(n_workers) if n_workers else tf.distribute.get_strategy()
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(32, 3)), rng.normal(size=(32, 2))
    examples = tf.data.Dataset.from_tensor_slices((x[:N_EXAMPLES], y[:N_EXAMPLES]))
    found = {}
    ways = [*((True, data) for data in ("values", "hand", "DATA", "OFF")), (False, "values")]
    for graph, data in ways:
        with strategy.scope():
            keras.utils.set_random_seed(0)
            layers = [keras.layers.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(2)]
            model = keras.Sequential(layers)
            # Clipping that binds: it is wrong if anybody clips before all gradients are added up.
            optimizer = SGD(0.1, momentum=0.9, global_clipnorm=0.05)
            metric = keras.metrics.MeanSquaredError()
        step = make_train_step(strategy, model, optimizer, "mse", graph=graph)
        told = []
        if data == "values":
            ends = np.cumsum(SIZES)
            for start, end in zip([0, *ends[:-1]], ends, strict=True):
                told.append(float(step(on_replicas(strategy, (x[start:end], y[start:end])))))
        else:
            batches = examples.batch(GLOBAL_BATCH)
            if n_workers and data == "hand":
                batches = share_of_worker(strategy, examples, GLOBAL_BATCH)
            elif n_workers and data == "DATA":
                batches = sharded(batches, "DATA")
            elif n_workers:  # OFF: each worker's dataset holds its own examples already
                own = examples.shard(n_workers, strategy.cluster_resolver.task_id)
                batches = sharded(own.batch(GLOBAL_BATCH), "OFF")  # TensorFlow cuts these, too
            for epoch in train(strategy, step, batches, epochs=2):
                told += [epoch.loss, epoch.examples, epoch.steps]
            if graph and data == "hand":
                told += list(evaluate(strategy, model, batches, [metric]).values())
        found[f"{data}, {'graph' if graph else 'eager'}"] = [np.array(w) for w in model.get_weights()], told
    return found


@pytest.fixture(scope="module")
def one_device():
    with LocalCluster(1, deadline=90) as cluster:
        return cluster.run(run_all_cases, 0)["worker:0"]


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_every_worker_holds_one_devices_weights(local_cluster, one_device, n_workers):
    cluster = local_cluster(workers=n_workers, deadline=120)
    results = cluster.run(run_all_cases, n_workers)
    assert len(results) == n_workers
    for task, found in results.items():
        assert list(found) == list(one_device)
        for way, (weights, told) in found.items():
            wanted, wanted_told = one_device[way]
            for got, want in zip(weights, wanted, strict=True):
                assert np.abs(got - want).max() < TOLERANCE, (task, way)
            # Losses and counts are those of all workers: a mean over this worker's own part is off by 1e-2.
            np.testing.assert_allclose(told, wanted_told, rtol=0, atol=TOLERANCE, err_msg=f"{task}, {way}")
    first = next(iter(one_device.values()))
    assert np.abs(first[0][0] - one_device["hand, graph"][0][0]).max() > 1e-3  # the cases are not one case
