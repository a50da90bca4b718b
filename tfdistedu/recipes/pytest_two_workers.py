"""A test of a training on two workers, in two processes that pytest starts and ends by itself.

Shows:  a free port for each worker; TF_CONFIG for each; a deadline; what each printed; comparing with one device.
Run:    pytest pytest_two_workers.py
Avoids: a test that hangs when a worker dies, processes that outlive it, ports that collide, and a test that passes
        although each worker trained alone.
"""

import json
import os
import socket
import subprocess
import sys

import numpy as np

DEADLINE = 120  # seconds for both workers
WORKERS = 2


def make_data():  # your data here; it travels to the workers as text
    return [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 9.0]]


# What a worker does: your training, in a program of its own. It prints its weights as the last line.
PROGRAM = """
import json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf

options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=30)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
with strategy.scope():
    weight = tf.Variable([0.5, -0.5])

def share_of(context):
    data = tf.data.Dataset.from_tensor_slices(json.loads(os.environ["DATA"]))
    data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.batch(context.get_per_replica_batch_size(4))

def replica_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((tf.linalg.matvec(x, weight) - 1.0) ** 2) / 4.0  # 4: the examples of all workers
    gradient = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, weight))
    weight.assign_sub(0.01 * gradient)

for batch in strategy.distribute_datasets_from_function(share_of):
    strategy.run(replica_step, args=(batch,))
print(json.dumps({"replicas": strategy.num_replicas_in_sync, "weight": weight.numpy().tolist()}))
"""


def free_ports(count):
    """Find ports that are free, and different from each other."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("localhost", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run_workers(program, workers=WORKERS, deadline=DEADLINE):
    """Run a program on each worker; return what each printed. None is left, whatever happens."""
    cluster = {"worker": [f"localhost:{port}" for port in free_ports(workers)]}
    started = []
    try:
        for index in range(workers):
            config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
            environment = {**os.environ, "TF_CONFIG": config, "DATA": json.dumps(make_data())}
            command = [sys.executable, "-c", program]
            started.append(
                subprocess.Popen(
                    command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
                )
            )
        outputs = []
        for index, process in enumerate(started):
            try:
                out, error = process.communicate(timeout=deadline)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"worker {index} did not end within {deadline} s") from None
            assert process.returncode == 0, f"worker {index} ended with {process.returncode}:\n{error[-2000:]}"
            outputs.append(out)
        return outputs
    finally:
        for process in started:
            process.kill()  # no harm to one that has ended
            process.communicate()


def test_two_workers_take_the_step_of_one_device():
    results = [json.loads(output.splitlines()[-1]) for output in run_workers(PROGRAM)]
    x, weight = np.array(make_data()), np.array([0.5, -0.5])
    expected = weight - 0.01 * 2 * x.T @ (x @ weight - 1) / 4  # one device, by hand
    for result in results:
        assert result["replicas"] == WORKERS  # or each trained alone, and this test would prove nothing
        np.testing.assert_allclose(result["weight"], expected, rtol=1e-5)  # float32


def test_a_worker_that_fails_is_named_and_none_is_left():
    try:
        run_workers("import os, sys, time\nif '\"index\": 1' in os.environ['TF_CONFIG']: sys.exit(3)", deadline=30)
    except AssertionError as error:
        assert "worker 1 ended with 3" in str(error)  # noqa: PT017 (standalone: without pytest's own names)
    else:
        raise AssertionError("a failing worker was not noticed")
