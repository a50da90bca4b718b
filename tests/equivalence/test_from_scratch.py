"""Processes joined by our own all-reduce train as one device does: the same step, loop and optimizers, line for line.

A test on equal batches of a small dense network would pass with a mean of means, with rows of an embedding counted once
a rank, and with initial weights that differ. So batches are ragged and empty, ranks draw other first weights, gradients
are clipped where it binds, and tables are sparse in both ways in which they travel.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdistedu.cluster import LocalCluster, TaskFailed
from tfdistedu.errors import BadInput
from tfdistedu.links import new_address, new_token
from tfdistedu.synchronous.buckets import Bucket, denser_is_cheaper, plan_buckets

TOLERANCE = 1e-12  # float64, a few steps of size 1; mistakes are 1e-3 and more
SIZES = (8, 7, 3, 1, 5)  # on 3 ranks: ragged, and ranks without examples
N_EXAMPLES, GLOBAL_BATCH = 31, 6


def run_all_cases(n_ranks, address, token, link, wire=None, floatx="float64"):
    """Train in every way; give each way's weights and what the loop told, by name. Without ranks: one device."""
    import contextlib

    import numpy as np

    from tfdistedu.quiet import import_tensorflow

    tf = import_tensorflow()
    import keras

    from tfdistedu.data.batches import on_replicas
    from tfdistedu.links import join
    from tfdistedu.step.batch_norm import BatchNormalization
    from tfdistedu.step.optimizer import SGD, Adam
    from tfdistedu.step.replica import make_train_step
    from tfdistedu.synchronous.from_scratch import FromScratchStrategy
    from tfdistedu.synchronous.loop import train
    from tfdistedu.synchronous.multi_worker import share_of_worker

    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(floatx)
    rank = int(os.environ["TFDISTEDU_TASK"].rpartition(":")[2])
    found, traced = {}, []
    with contextlib.ExitStack() as stack:
        strategy = tf.distribute.get_strategy()
        if n_ranks:
            comm = stack.enter_context(join(rank, n_ranks, address, token, link, deadline=20))
            # Limits so small that the few gradients here are several buckets.
            strategy = FromScratchStrategy(comm, 64, 16, wire, lambda *event: traced.append(event))
        rng = np.random.default_rng(7)
        x, y = rng.normal(size=(32, 3)), rng.normal(size=(32, 2))
        words = rng.integers(0, 50, size=(32, 4))
        examples = tf.data.Dataset.from_tensor_slices((x[:N_EXAMPLES], y[:N_EXAMPLES]))
        layers = keras.layers
        models = {
            "dense": lambda: [layers.Input((3,)), layers.Dense(4, "tanh"), layers.Dense(2)],
            "batch norm": lambda: [layers.Input((3,)), layers.Dense(4), BatchNormalization(), layers.Dense(2)],
            "few rows": lambda: [layers.Input((4,)), layers.Embedding(50, 3), layers.Flatten(), layers.Dense(2)],
            "many rows": lambda: [layers.Input((4,)), layers.Embedding(5, 3), layers.Flatten(), layers.Dense(2)],
        }
        ways = [("dense", True, data) for data in ("values", "hand", "batches")]
        ways += [("dense", False, "values"), *((name, True, "values") for name in list(models)[1:])]
        for name, graph, data in ways if floatx == "float64" else ways[:1]:
            with strategy.scope():
                keras.utils.set_random_seed(rank)  # other first weights on each rank: rank 0's must count
                model = keras.Sequential(models[name]())
                optimizer = SGD(0.1, momentum=0.9, global_clipnorm=0.05) if "rows" not in name else Adam(0.05)
            step = make_train_step(strategy, model, optimizer, "mse", graph=graph)
            told, ends = [], np.cumsum(SIZES)
            inputs = words % (5 if name == "many rows" else 50) if "rows" in name else x
            if data == "values":
                for start, end in zip([0, *ends[:-1]], ends, strict=True):
                    told.append(float(step(on_replicas(strategy, (inputs[start:end], y[start:end])))))
            else:
                batches = examples.batch(GLOBAL_BATCH)
                if n_ranks and data == "hand":
                    batches = share_of_worker(strategy, examples, GLOBAL_BATCH)
                for epoch in train(strategy, step, batches, epochs=2):
                    told += [epoch.loss, epoch.examples, epoch.steps]
            found[f"{name}, {data}, {'graph' if graph else 'eager'}"] = [np.array(w) for w in model.get_weights()], told
        if n_ranks:
            comm.barrier()
    return found, len({bucket for _, bucket, _ in traced})


@pytest.fixture(scope="module")
def one_device():
    with LocalCluster(1, deadline=90) as cluster:
        return cluster.run(run_all_cases, 0, "", "", "")["worker:0"][0]


@pytest.mark.parametrize(("n_ranks", "link"), [(2, "shared_memory"), (3, "shared_memory"), (3, "tcp")])
def test_every_rank_holds_one_devices_weights(local_cluster, one_device, n_ranks, link):
    cluster = local_cluster(workers=n_ranks, deadline=120)
    results = cluster.run(run_all_cases, n_ranks, new_address(), new_token(), link)
    for task, (found, n_buckets) in results.items():
        assert n_buckets > 1  # or the buckets would not be tried
        assert list(found) == list(one_device)
        for way, (weights, told) in found.items():
            wanted, wanted_told = one_device[way]
            for got, want in zip(weights, wanted, strict=True):
                assert np.abs(got - want).max() < TOLERANCE, (task, way)
            np.testing.assert_allclose(told, wanted_told, rtol=0, atol=TOLERANCE, err_msg=f"{task}, {way}")


def test_float16_on_the_wire_is_near_and_is_not_the_same(local_cluster):
    cluster = local_cluster(workers=2, deadline=60)
    whole, halved = (
        cluster.run(run_all_cases, 2, new_address(), new_token(), "shared_memory", wire, "float32")["worker:0"][0]
        for wire in (None, "float16")
    )
    (way,) = halved
    gap = max(np.abs(a - b).max() for a, b in zip(halved[way][0], whole[way][0], strict=True))
    assert 1e-8 < gap < 2e-3  # float16 has 11 bits: 5e-4 of a gradient of norm 0.05, in five steps of rate 0.1


def dies_in_a_step(address, token, folder):
    import signal

    import keras

    from tfdistedu.links import join
    from tfdistedu.quiet import import_tensorflow
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step
    from tfdistedu.synchronous.from_scratch import FromScratchStrategy

    tf = import_tensorflow()
    rank = int(os.environ["TFDISTEDU_TASK"].rpartition(":")[2])
    with join(rank, 2, address, token, deadline=20) as comm:
        strategy = FromScratchStrategy(comm)
        with strategy.scope():
            model, optimizer = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)]), SGD(0.1)
        step = make_train_step(strategy, model, optimizer, "mse")
        for number in range(5):
            if rank == 1 and number == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            step((tf.ones((2, 3)), tf.ones((2, 2))))


def test_a_rank_that_dies_in_training_is_named(local_cluster, tmp_path):
    cluster = local_cluster(workers=2, deadline=60)
    with pytest.raises(TaskFailed) as caught:
        cluster.run(dies_in_a_step, new_address(), new_token(), str(tmp_path))
    error = caught.value.outcomes["worker:0"].error
    assert "rank 1 is gone (its process ended)" in error
    assert error.startswith("PeerGone: ")


@given(
    st.lists(st.tuples(st.integers(0, 100), st.sampled_from(["float32", "float16"])), max_size=30),
    st.integers(1, 200),
    st.integers(1, 200),
)
def test_each_gradient_is_in_one_bucket_from_the_last_to_the_first(gradients, most, first):
    sizes, dtypes = [size for size, _ in gradients], [dtype for _, dtype in gradients]
    buckets = plan_buckets(sizes, dtypes, most, first)
    members = [member for bucket in buckets for member in bucket.members]
    assert sorted(members) == list(range(len(gradients)))
    for number, bucket in enumerate(buckets):
        assert list(bucket.members) == sorted(bucket.members, reverse=True)
        assert {dtypes[member] for member in bucket.members} == {bucket.dtype}
        assert bucket.n_bytes == sum(sizes[member] for member in bucket.members)
        # Full, and not fuller than it had to be: without its last gradient it was still open.
        assert bucket.n_bytes - sizes[bucket.members[-1]] < (max(most, first) if number else first)
    # The last of each type may be open; all others are full.
    for number, bucket in enumerate(buckets[: -len(set(dtypes)) or None]):
        assert bucket.n_bytes >= (most if number else first)


def test_the_first_bucket_leaves_early():
    assert plan_buckets([10, 10, 10, 10], ["float32"] * 4, most=100, first=10) == [
        Bucket((3,), "float32", 10),
        Bucket((2, 1, 0), "float32", 30),
    ]
    with pytest.raises(BadInput, match="limits of at least 1 byte"):
        plan_buckets([1], ["float32"], most=0)


def test_a_table_travels_whole_where_its_rows_would_cost_more():
    # 8 ranks with 100 rows each of a table of 1000: 800 rows with indices against twice 1000 rows.
    assert not denser_is_cheaper(800, 1000, 256)
    assert denser_is_cheaper(2100, 1000, 256)
