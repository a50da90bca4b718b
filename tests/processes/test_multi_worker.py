"""How a training on several workers starts, or says why not; Keras's `fit` there; each example exactly once."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pytest

from tfdistedu.cluster import TaskFailed
from tfdistedu.cluster.ports import reserve_port
from tfdistedu.errors import BadInput, DeadlineExceeded
from tfdistedu.synchronous.rendezvous import meet


def make_strategy(first=None, change=None, **arguments):
    """Make the strategy, after something that spoils it."""
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy, tf

    if change is not None:
        change(os.environ)
    if first == "wake":
        tf.constant(1)
    strategy = multi_worker_strategy(**arguments)
    return strategy.num_replicas_in_sync


def without_config(environment):
    del environment["TF_CONFIG"]


def no_cluster(environment):
    environment["TF_CONFIG"] = '{"task": {"type": "worker", "index": 0}}'


def no_json(environment):
    environment["TF_CONFIG"] = "{'cluster'"


def no_task(environment):
    environment["TF_CONFIG"] = '{"cluster": {"worker": ["a:1", "b:1"]}}'


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"change": without_config}, "BadInput: TF_CONFIG is not set, so this worker would train alone"),
        ({"change": no_cluster}, "BadInput: TF_CONFIG lists no task, so this worker would train alone"),
        ({"change": no_json}, "BadInput: TF_CONFIG, line 1, column 2: it is not JSON"),
        ({"change": no_task}, "BadInput: TF_CONFIG, task: it does not say which task this process is"),
        ({"n_workers": 3}, "BadInput: 3 workers are expected, and TF_CONFIG lists 2: worker:0, worker:1"),
        ({"first": "wake"}, r"MachineCannot: the strategy of several workers .*woken by .*tf.constant\(1\)"),
    ],
)
def test_a_worker_that_would_train_alone_or_wrongly_is_refused(local_cluster, arguments, complaint):
    cluster = local_cluster(workers=2)
    with pytest.raises(TaskFailed, match=complaint):
        cluster.run(make_strategy, on="worker:0", **arguments)


def test_tensorflow_alone_would_say_nothing(local_cluster):
    """Why it is refused: without TF_CONFIG the same strategy is one of a single worker, and no error comes."""

    def alone():
        import tensorflow as tf

        del os.environ["TF_CONFIG"]
        return tf.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync

    assert local_cluster(workers=2).run(alone) == {"worker:0": 1, "worker:1": 1}


def test_a_chief_counts_as_a_worker(local_cluster):
    cluster = local_cluster(workers=1, chief=True)
    assert cluster.run(make_strategy, n_workers=2) == {"chief:0": 2, "worker:0": 2}


@pytest.mark.parametrize("absent", ["worker:0", "worker:2"])
def test_a_worker_that_does_not_come_is_named_on_every_other(local_cluster, absent):
    """Worker 0 is the leader, at whose address the others meet; its absence is noticed by the others themselves."""
    cluster = local_cluster(workers=3)
    others = [task for task in cluster.tasks if task != absent]
    outcomes = cluster.start(make_strategy, on=others, start_deadline=1.0).outcomes(deadline=20)
    address = cluster.addresses["worker"][int(absent[-1])]
    for task in others:
        assert outcomes[task].error.startswith(
            f"DeadlineExceeded: the training cannot start: {absent} ({address}) did not come within 1 s."
        ), outcomes
    # Nothing is spoiled: TensorFlow was not woken, so they can try again when all are there.
    assert cluster.run(make_strategy) == {"worker:0": 3, "worker:1": 3, "worker:2": 3}


def test_a_worker_with_another_cluster_is_found_out(local_cluster):
    cluster = local_cluster(workers=2)

    def mistyped():
        config = json.loads(os.environ["TF_CONFIG"])
        if config["task"]["index"] == 1:
            config["cluster"]["worker"][1] = "localhost:1"
            os.environ["TF_CONFIG"] = json.dumps(config)
        return make_strategy(start_deadline=10.0)

    with pytest.raises(TaskFailed) as caught:
        cluster.run(mistyped)
    for task in cluster.tasks:
        error = caught.value.outcomes[task].error
        assert re.match(r"TfdisteduError: worker:1 was given another cluster .*localhost:1", error), error


def test_the_meeting_needs_no_tensorflow_and_bears_strangers(monkeypatch):
    import socket
    import threading
    import time

    addresses = [f"localhost:{reserve_port()}" for _ in range(2)]
    cluster = {f"worker:{index}": address for index, address in enumerate(addresses)}
    with pytest.raises(BadInput, match="says that this is worker:2"):
        meet(cluster, "worker:2", 1.0)
    with pytest.raises(DeadlineExceeded, match="worker:0"):
        meet(cluster, "worker:1", 0.2)
    meet({"worker:0": addresses[0]}, "worker:0", 0.0)  # alone: nobody to wait for
    port, went, forked, fork = int(addresses[0].split(":")[1]), [], [], os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(fork()) or forked[-1])

    def lead():
        is_up = meet(cluster, "worker:0", 10.0)
        time.sleep(0.3)  # TensorFlow takes its time; who comes now would be refused
        with socket.create_server(("", port)) as tensorflow:
            tensorflow.settimeout(10)
            tensorflow.accept()[0].close()
            went.append(time.monotonic())
            follower.join(10)
            is_up()

    def follow():
        meet(cluster, "worker:1", 10.0)()
        went.append(time.monotonic())

    leader, follower = threading.Thread(target=lead), threading.Thread(target=follow)
    leader.start()
    for nonsense in (b"PRI * HTTP/2.0\r\n\r\n", b"[1]\n", b""):
        for _ in range(100):
            try:
                with socket.create_connection(("localhost", port), timeout=1) as stranger:
                    stranger.sendall(nonsense)
                break
            except ConnectionRefusedError:
                pass
    follower.start()
    leader.join(15)
    assert len(went) == 2
    assert went == sorted(went)  # nobody was let go before the leader listened
    (helper,) = forked
    with pytest.raises(ProcessLookupError):
        os.kill(helper, 0)  # the helper is gone, and no zombie is left of it
    with socket.create_server(("", reserve_port())) as busy, pytest.raises(BadInput, match="who else uses it"):
        meet({"worker:0": f"localhost:{busy.getsockname()[1]}", "worker:1": "b:1"}, "worker:0", 1.0)


def see_examples(shuffled, n_examples, global_batch):
    """Give the numbers of the examples that this worker saw in each of two epochs, batch by batch."""
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy, share_of_worker, tf

    strategy = multi_worker_strategy()
    dataset = tf.data.Dataset.range(n_examples)
    if shuffled:
        dataset = dataset.shuffle(n_examples, seed=3 if shuffled == "agreed" else None)
    batches = share_of_worker(strategy, dataset, global_batch)
    local = strategy.experimental_local_results
    return [[[int(n) for part in local(batch) for n in part] for batch in batches] for _ in range(2)]


@pytest.mark.parametrize("shuffled", [None, "agreed"])
def test_each_example_is_seen_exactly_once_an_epoch_and_workers_end_together(local_cluster, shuffled):
    # 13 examples on 3 workers: 5, 4, 4; batches of 2 each, so that one has 3 batches and the others 2.
    seen = local_cluster(workers=3).run(see_examples, shuffled, 13, 6)
    for epoch in range(2):
        assert {len(task[epoch]) for task in seen.values()} == {3}, "they ended together"
        everything = sorted(number for task in seen.values() for batch in task[epoch] for number in batch)
        assert everything == list(range(13))
    assert [len(batch) for batch in seen["worker:2"][0]] == [2, 2, 0]
    first, second = seen["worker:0"]
    assert (first != second) is (shuffled == "agreed")  # shuffled anew in each epoch, and still agreed


def test_shuffled_without_an_agreed_seed_examples_are_lost_and_doubled(local_cluster):
    """Why the seed matters: this is the widely made mistake, and nothing complains."""
    seen = local_cluster(workers=2).run(see_examples, "each alone", 40, 8)
    everything = [number for task in seen.values() for batch in task[0] for number in batch]
    assert len(everything) == 40
    assert len(set(everything)) < 40  # by chance it would be right once in 10^11


def fit(n_workers, library):
    """Fit, evaluate, predict; with `mended`, Keras 3 with the mix-in."""
    from tfdistedu.quiet import import_tensorflow

    tf = import_tensorflow()
    if library == "tf_keras":
        import tf_keras as keras
    else:
        import keras
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy, sharded
    from tfdistedu.synchronous.multi_worker_fit import FitsOnWorkers

    strategy = multi_worker_strategy() if n_workers else tf.distribute.get_strategy()
    kind = type("Mended", (FitsOnWorkers, keras.Sequential), {}) if library == "mended" else keras.Sequential
    with strategy.scope():
        keras.utils.set_random_seed(0)
        model = kind([keras.layers.InputLayer((8,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse", metrics=["mae"])
    x = np.random.default_rng(0).normal(size=(48, 8)).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    dataset = sharded(dataset, "DATA") if n_workers else dataset
    history = model.fit(dataset, epochs=2, verbose=0).history
    evaluated = model.evaluate(dataset, verbose=0)
    predicted = model.predict(dataset, verbose=0)
    weights = [np.array(weight) for weight in model.get_weights()]
    return [*history["loss"], *history["mae"], *evaluated], weights, predicted, np.tanh(x @ weights[0] + weights[1])


@pytest.mark.parametrize("library", ["mended", "tf_keras"])
def test_fit_evaluate_and_predict_give_one_devices_numbers(local_cluster, library):
    wanted, wanted_weights, wanted_predicted, _ = local_cluster(workers=1).run(fit, 0, library)["worker:0"]
    for task, found in local_cluster(workers=2, deadline=90).run(fit, 2, library).items():
        numbers, weights, predicted, hidden = found
        # float32, six steps; the widely seen mistake (a gradient n times too large) is 1e-1.
        np.testing.assert_allclose(numbers, wanted, rtol=1e-5, err_msg=task)
        for got, want in zip(weights, wanted_weights, strict=True):
            np.testing.assert_allclose(got, want, atol=1e-5, err_msg=task)
        assert predicted.shape == wanted_predicted.shape == (48, 1)
        # Each worker predicts all, in order.
        np.testing.assert_allclose(predicted, hidden @ weights[2] + weights[3], atol=1e-5, err_msg=task)


@pytest.mark.upstream
def test_keras_3_as_shipped_does_not_fit_on_workers(local_cluster):
    """Red on the day when it is repaired: then the mix-in can go."""
    with pytest.raises(TaskFailed, match="fit failed on worker:0"):
        local_cluster(workers=2, echo=False).run(fit, 2, "keras")
