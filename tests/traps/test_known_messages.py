"""Each entry of the catalogue of messages: TensorFlow is made to write the message, and `explain` names the entry.

A text copied from a report would pass for ever; these turn red on the day TensorFlow says something else.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

from tfdistedu.cluster.explain import explain_log
from tfdistedu.cluster.known_messages import MESSAGES

TWO = """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
"""
MULTI_WORKER = "import tensorflow as tf\ntf.distribute.MultiWorkerMirroredStrategy()\n"


def config(cluster: object, task: object = None) -> str:
    return json.dumps({"cluster": cluster} | ({"task": task} if task else {}))


def worker(index: int = 0, *addresses: str) -> str:
    return config({"worker": list(addresses) or ["localhost:1", "localhost:2"]}, {"type": "worker", "index": index})


# By code: one or more programs, each with the TF_CONFIG that it finds. All of them end with the message.
ALONE: dict[str, list[tuple[str, str | None]]] = {
    "group-size": [
        (
            "import tensorflow as tf\n"
            "cpu = tf.config.list_physical_devices('CPU')[0]\n"
            "tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)\n"
            "for n in (4, 2):\n"
            "    strategy = tf.distribute.MirroredStrategy([f'CPU:{i}' for i in range(n)])\n"
            "    add = lambda: tf.distribute.get_replica_context().all_reduce('SUM', tf.identity(1.0))\n"
            "    tf.function(lambda: strategy.run(add), autograph=False)()\n",
            None,
        )
    ],
    "started-too-late": [("import tensorflow as tf\ntf.constant(1)\n" + MULTI_WORKER, worker())],
    "trains-alone": [("import tensorflow as tf\ntf.get_logger().setLevel('INFO')\n" + MULTI_WORKER, None)],
    "virtual-devices-late": [("import tensorflow as tf\ntf.constant(1)\n" + TWO, None)],
    "optimizer-not-built": [
        (
            TWO.replace(", tf.distribute.ReductionToOneDevice()", "") + "import keras\n"
            "with strategy.scope():\n"
            "    weights, optimizer = [keras.Variable([0.0]), keras.Variable([0.0])], keras.optimizers.Adam(0.1)\n"
            "step = lambda: optimizer.apply([tf.ones([1]), tf.ones([1])], weights)\n"
            "for _ in range(3):\n"
            "    tf.function(lambda: strategy.run(step))()\n",
            None,
        )
    ],
    "reduce-in-a-branch": [
        (
            TWO + "import keras\n"
            "with strategy.scope():\n"
            "    weights, optimizer = keras.Variable([0.0]), keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)\n"
            "    optimizer.build([weights])\n"
            "tf.function(lambda: strategy.run(lambda: optimizer.apply([tf.ones([1])], [weights])))()\n",
            None,
        )
    ],
    "strategies-mixed": [
        (
            TWO + "import keras\n"
            "other = tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())\n"
            "with strategy.scope():\n"
            "    weights, optimizer = keras.Variable([0.0]), keras.optimizers.SGD(0.1)\n"
            "    optimizer.build([weights])\n"
            "other.run(lambda: optimizer.apply([tf.ones([1])], [weights]))\n",
            None,
        ),
        (
            TWO + "import keras\n"
            "other = tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())\n"
            "with strategy.scope():\n"
            "    weights = keras.Variable([0.0])\n"
            "with other.scope():\n"
            "    keras.optimizers.SGD(0.1, momentum=0.5).build([weights])\n",
            None,
        ),
    ],
    "data-ended": [
        (
            "import tensorflow as tf\n"
            "iterator = iter(tf.data.Dataset.range(2))\n"
            "step = tf.function(lambda: next(iterator), autograph=False)\n"
            "for _ in range(3):\n"
            "    step()\n",
            None,
        )
    ],
    "keras-fit-fails": [],  # two workers, below
    "address-in-use": [
        (
            "import socket, tensorflow as tf\n"
            "taken = socket.create_server(('', 0))\n"
            "address = f'localhost:{taken.getsockname()[1]}'\n"
            "tf.distribute.Server({'worker': [address]}, job_name='worker', task_index=0)\n",
            None,
        )
    ],
    "tf-config-not-json": [(MULTI_WORKER, "{'cluster': {}}"), (MULTI_WORKER, "{cluster:{}}")],
    "task-not-given": [(MULTI_WORKER, config({"worker": ["localhost:1", "localhost:2"]}))],
    "task-type-not-valid": [
        (MULTI_WORKER, config({"worker": ["localhost:1"]}, {"type": "chief", "index": 0})),
        (MULTI_WORKER, config({"worker": ["localhost:1"]}, {"type": "master", "index": 0})),
        (MULTI_WORKER, config({"master": ["localhost:1"]}, {"type": "worker", "index": 0})),
    ],
    "task-index-not-valid": [
        (MULTI_WORKER, worker(2)),
        (MULTI_WORKER, worker(-1)),
        (
            "import tensorflow as tf\n"
            "tf.distribute.Server({'worker': ['localhost:1']}, job_name='worker', task_index=2)\n",
            None,
        ),
    ],
    "address-not-valid": [
        (MULTI_WORKER, worker(0, "localhost", "localhost:2")),
        (MULTI_WORKER, worker(0, "http://localhost:1", "localhost:2")),
    ],
    "metric-outside-run": [
        (
            TWO + "with strategy.scope():\n"
            "    count = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ,\n"
            "                        aggregation=tf.VariableAggregation.SUM)\n"
            "    tf.function(lambda: count.assign_add(1.0))()\n"
            "    count.assign_add(1.0)\n",
            None,
        )
    ],
    "nccl-on-cpu": [
        (
            TWO.replace("ReductionToOneDevice", "NcclAllReduce")
            + "add = lambda: tf.distribute.get_replica_context().all_reduce('SUM', tf.identity(1.0))\n"
            "tf.function(lambda: strategy.run(add), autograph=False)()\n",
            None,
        )
    ],
}

# Several tasks in forks of one process that imported TensorFlow and has not used it: an import costs seconds. The
# driver waits for one of them, ends the others, and writes all logs.
DRIVER = """
import json, os, signal, sys, time, traceback
import tensorflow as tf
names = {"tf": tf, "os": os, "signal": signal, "time": time}

tasks, waiting = json.loads(sys.argv[1]), int(sys.argv[2])
children = []
for rank, (program, variables) in enumerate(tasks):
    pid = os.fork()
    if pid == 0:
        log = os.open(f"{rank}.log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1), os.dup2(log, 2)
        signal.alarm(45)
        os.environ.update(variables)
        try:
            exec(compile(program, f"task-{rank}.py", "exec"), {"rank": rank} | names)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(0)
    children.append(pid)
os.waitpid(children[waiting], 0)
for rank, pid in enumerate(children):
    if rank != waiting:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
for rank in range(len(children)):
    sys.stdout.write(open(f"{rank}.log", errors="replace").read())
"""
# Two workers of MultiWorkerMirroredStrategy; `rank` is 0 or 1.
ADD = """
def all_reduce(strategy, shape):
    add = lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones(shape))
    return tf.function(lambda: strategy.run(add), autograph=False)()
"""
TOGETHER = {
    "peer-left": (
        ADD + "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "all_reduce(strategy, [2])\n"
        "if rank == 0:\n"
        "    time.sleep(1)  # the other one is in the next collective by then, and waits\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "while True:\n"
        "    all_reduce(strategy, [2])\n"
    ),
    "peer-left, without a word": (
        ADD + "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "all_reduce(strategy, [2])\n"
        "if rank == 1:\n"
        "    os._exit(0)\n"
        "all_reduce(strategy, [2])\n"
    ),
    "collective-deadline": (
        ADD + "options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=1.0)\n"
        "strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)\n"
        "if rank == 1:\n"
        "    signal.pause()\n"
        "all_reduce(strategy, [2])\n"
    ),
    "collectives-mismatched": (
        ADD + "strategy = tf.distribute.MultiWorkerMirroredStrategy()\nall_reduce(strategy, [2 + rank])\n"
    ),
    "too-few-files": (
        "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "open('one.txt', 'w').write('a line\\n')\n"
        "list(strategy.experimental_distribute_dataset(tf.data.TextLineDataset(['one.txt']).batch(2)))\n"
    ),
    "keras-fit-fails": (
        "import keras, numpy as np\n"
        "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "with strategy.scope():\n"
        "    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])\n"
        "    model.compile('sgd', 'mse')\n"
        "model.fit(np.ones((4, 2)), np.ones((4, 1)), batch_size=2, verbose=0)\n"
    ),
    "keras-fit-fails, second place": (
        "import keras, numpy as np\n"
        "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "class Model(keras.Sequential):\n"
        "    def _symbolic_build(self, *_, **__):\n"
        "        pass\n"
        "with strategy.scope():\n"
        "    model = Model([keras.layers.Input((2,)), keras.layers.Dense(1)])\n"
        "    model.compile('sgd', 'mse')\n"
        "model.fit(np.ones((4, 2)), np.ones((4, 1)), batch_size=2, verbose=0)\n"
    ),
    "destinations-empty": (
        "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "(batch,) = strategy.experimental_distribute_dataset(tf.data.Dataset.range(2).batch(2))\n"
        "add = lambda value: tf.distribute.get_replica_context().all_reduce('SUM', value)\n"
        "tf.function(lambda value: strategy.run(add, args=(value,)), autograph=False)(batch)\n"
    ),
}


def codes(log: str) -> list[str]:
    return [found.message.code for found in explain_log(log)]


def test_every_entry_is_produced_by_a_test_of_this_file():
    produced = {code for code, programs in ALONE.items() if programs}
    produced |= {code.split(",")[0] for code in TOGETHER} | {"peer-unreachable", "collectives-aborted"}
    assert produced == {message.code for message in MESSAGES}


@pytest.mark.upstream
@pytest.mark.parametrize(
    ("code", "program", "tf_config"),
    [(code, *one) for code, programs in ALONE.items() for one in programs],
    ids=[f"{code}-{n}" for code, programs in ALONE.items() for n in range(len(programs))],
)
def test_a_program_writes_the_message_and_explain_names_its_cause_first(code, program, tf_config, fresh_processes):
    environment = {"TF_CONFIG": tf_config} if tf_config is not None else {}
    finished = fresh_processes.run(program, environment=environment, timeout=60)
    assert codes(finished.stderr)[:1] == [code], finished.stderr[-2000:]


def ports(n: int) -> list[int]:
    """Return n free ports; each is used at once, by a task of this test."""
    servers = [socket.create_server(("", 0)) for _ in range(n)]
    numbers = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return numbers


def log_of(fresh_processes, tasks: list[tuple[str, dict[str, str]]], waiting: int) -> str:
    """Run some tasks until one of them ends, and return what all of them wrote."""
    finished = fresh_processes.run(DRIVER, (json.dumps(tasks), str(waiting)), timeout=50)
    assert finished.status == 0, finished.stderr
    return finished.stdout


@pytest.mark.upstream
@pytest.mark.parametrize("name", TOGETHER)
def test_two_workers_write_the_message_and_explain_names_it(name, fresh_processes):
    code = name.split(",")[0]
    addresses = [f"localhost:{port}" for port in ports(2)]
    tasks = [(TOGETHER[name], {"TF_CONFIG": worker(rank, *addresses)}) for rank in range(2)]
    # Wait for the one that ends with an error of its own; the other may wait ten seconds more for a heartbeat.
    log = log_of(fresh_processes, tasks, waiting=1 if name in ("peer-left", "collectives-mismatched") else 0)
    assert code in codes(log), log[-2000:]
    if code in ("peer-left", "collectives-mismatched"):
        assert codes(log)[-1] == "collectives-aborted", "an echo comes after its cause"


SERVER = """
import json
job, spec = json.loads(os.environ["SERVE"])
tf.distribute.Server(spec, job_name=job, task_index=0).join()
"""
COORDINATOR = """
import json
spec = tf.train.ClusterSpec(json.loads(os.environ["SERVE"])[1])
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    variable = tf.Variable(1.0)
print("the coordinator has its variable", flush=True)
coordinator.schedule(tf.function(lambda: variable.assign_add(1.0), autograph=False))
coordinator.join()
"""


@pytest.mark.upstream
def test_a_worker_that_cannot_dial_the_ps_shows_as_a_tensor_that_cannot_be_found(tmp_path):
    """All on one machine, and one edge is missing: the worker alone has a proxy, behind which there is no ps.

    The coordinator reaches both, and makes its variable; so a check of its edges alone would find nothing. In a plain
    process, for the line about the tensor is a warning from C++, which our import leaves out.
    """
    worker_port, ps_port = ports(2)
    spec = {"worker": [f"localhost:{worker_port}"], "ps": [f"localhost:{ps_port}"]}
    no_way = {"grpc_proxy": "http://127.0.0.1:1"}
    tasks = [
        (SERVER, {"SERVE": json.dumps(["worker", spec])} | no_way),
        (SERVER, {"SERVE": json.dumps(["ps", spec])}),
        (COORDINATOR, {"SERVE": json.dumps(["chief", spec])}),
    ]
    words = [sys.executable, "-c", DRIVER, json.dumps(tasks), "2"]
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "1"}
    log = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120).stdout
    assert "the coordinator has its variable" in log
    assert "Unable to find the relevant tensor remote_handle" in log
    assert "failed to connect to all addresses" in log
    assert codes(log)[0] == "peer-unreachable"
