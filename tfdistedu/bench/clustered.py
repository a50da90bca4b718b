"""How is a cell of the table run on two workers, and judged as one?

    run_clustered(work, ...)    a local cluster of two tasks; both do the work; the worse of their answers counts

It stands where `tfdistedu.bench.isolated.run_isolated` stands for strategies of one process. Cost: a tenth of a second
to start on the warm server, one second to train. Left out: more workers; the equivalence tests have three.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tfdistedu.bench.isolated import Ended
from tfdistedu.cluster.local import LocalCluster
from tfdistedu.cluster.outcome import TaskFailed
from tfdistedu.links import join, new_address, new_token

N_WORKERS = 2
_MEET = "TFDISTEDU_BENCH_MEET"


def run_clustered(work: Callable[..., Any], *arguments: Any, deadline: float = 60.0) -> Ended:
    """Run a function on two workers.

    Args:
        work: A function of a module that returns a number.
        *arguments: What it takes.
        deadline: Seconds for all of it.

    Returns:
        The largest value, or the first line of what worker 0 raised.

    """
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", _MEET: f"{new_address()} {new_token()}"}
    try:
        with LocalCluster(N_WORKERS, deadline=deadline, echo=False, env=environment) as cluster:
            outcomes = cluster.start(work, *arguments).outcomes()
    except TaskFailed as failed:
        return Ended(None, str(failed).splitlines()[0])
    errors = [outcome.error for _, outcome in sorted(outcomes.items()) if outcome.error]
    if errors:
        return Ended(None, errors[0])
    return Ended(max(outcome.value for outcome in outcomes.values()), None)


def multi_worker() -> Any:
    """Make `MultiWorkerMirroredStrategy`, in a task.

    Returns:
        The strategy, of two workers.

    """
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy

    return multi_worker_strategy(N_WORKERS, timeout=20.0)


def from_scratch() -> Any:
    """Make the strategy over our own all-reduce, in a task.

    Returns:
        The strategy, of two ranks.

    """
    from tfdistedu.synchronous.from_scratch import FromScratchStrategy

    rank = int(os.environ["TFDISTEDU_TASK"].rpartition(":")[2])
    return FromScratchStrategy(join(rank, N_WORKERS, *os.environ[_MEET].split(), deadline=20.0))
