"""How long does a cluster need from nothing to its first all-reduce?

Three starts of the same four workers, each until *all* of them have the sum of a `MultiWorkerMirroredStrategy`:

    plain    four `python` processes, each of which imports TensorFlow for itself
    cold     a server that imports TensorFlow once, and four forks
    warm     four forks of a server that is there already         (what a second test or cell pays)

Cost: some 15 s on two cores, most of it the plain start. Left out: training; what the launcher itself imports.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from tfdistedu.cluster.forks import kept_server
from tfdistedu.cluster.local import LocalCluster
from tfdistedu.cluster.ports import reserve_port
from tfdistedu.errors import BadInput, DeadlineExceeded, TfdisteduError

# The same lines for all three; run as a program they print the sum.
FIRST_REDUCTION = """
from tfdistedu.synchronous.multi_worker import multi_worker_strategy, tf

def first_reduction():
    strategy = multi_worker_strategy(timeout=60.0)

    def on_replica():
        return tf.distribute.get_replica_context().all_reduce("SUM", tf.identity(tf.ones([4])))

    reduce = tf.function(lambda: strategy.run(on_replica), autograph=False)
    return float(strategy.experimental_local_results(reduce())[0][0])
"""


def measure(tasks: int = 4, rounds: int = 3, deadline: float = 120.0) -> dict[str, Any]:
    """Time the three starts.

    Args:
        tasks: Number of workers, at least 2.
        rounds: Warm starts, of which the median is taken; at least 1.
        deadline: Seconds that a start may take.

    Returns:
        `tasks`, `cold_seconds`, `warm_seconds` and `plain_seconds`.

    Raises:
        BadInput: Fewer than 2 tasks, or no round.

    """
    if tasks < 2 or rounds < 1:
        raise BadInput(f"bench boot: at least 2 tasks and 1 round, not {tasks} and {rounds}.")
    plain = _plain(tasks, deadline)
    cold = _forked(tasks, deadline, warm=False)
    kept_server(dict(os.environ)).wait_ready(deadline)
    warm = statistics.median(_forked(tasks, deadline, warm=True) for _ in range(rounds))
    return {"tasks": tasks, "cold_seconds": cold, "warm_seconds": warm, "plain_seconds": plain}


def _run_first_reduction(source: str) -> float:
    names: dict[str, Any] = {}
    exec(compile(source, "first_reduction.py", "exec"), names)
    return names["first_reduction"]()


def _forked(tasks: int, deadline: float, warm: bool) -> float:
    start = time.perf_counter()
    with LocalCluster(tasks, warm=warm, echo=False, deadline=deadline, start_deadline=deadline) as cluster:
        sums = cluster.run(_run_first_reduction, FIRST_REDUCTION)
        seconds = time.perf_counter() - start
    _check(list(sums.values()), tasks)
    return seconds


def _plain(tasks: int, deadline: float) -> float:
    program = f"{FIRST_REDUCTION}\nprint(first_reduction(), flush=True)\nimport time\ntime.sleep(3600)"
    addresses = [f"localhost:{reserve_port()}" for _ in range(tasks)]
    start = time.perf_counter()
    with contextlib.ExitStack() as processes, tempfile.TemporaryFile() as log:
        started = []
        for index in range(tasks):
            config = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})
            environment = {**os.environ, "TF_CONFIG": config, "TF_CPP_MIN_LOG_LEVEL": "3"}
            process = subprocess.Popen(
                [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
            processes.callback(process.wait)
            processes.callback(process.kill)
            started.append(process)
        sums = [_line(process, start + deadline) for process in started]
        seconds = time.perf_counter() - start
        if None in sums:
            log.seek(0)
            raise TfdisteduError(f"a plain process failed:\n{log.read().decode(errors='replace')[-2000:]}")
    _check([float(text) for text in sums], tasks)
    return seconds


def _line(process: subprocess.Popen, end: float) -> str | None:
    from multiprocessing.connection import wait

    if not wait([process.stdout], max(0.0, end - time.perf_counter())):
        raise DeadlineExceeded(f"a plain process (pid {process.pid}) gave no sum before the deadline.")
    return process.stdout.readline() or None


def _check(sums: list[float], tasks: int) -> None:
    if sums != [float(tasks)] * tasks:
        raise TfdisteduError(f"the sum of {tasks} ones came out as {sums}.")
