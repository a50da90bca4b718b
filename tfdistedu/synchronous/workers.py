"""How do workers agree on something, and how do they leave?

Whatever one worker knows and the others do not (a signal, a full disk, an empty folder) must not change what it calls
next: the others would wait for ever in a collective that it does not join. So all tell all, and then decide alike.

    worker:0   tell_all(3)  --+                  +--  [3, 0, 7]    each decides from the same numbers
    worker:1   tell_all(0)  --+- one all-reduce -+--  [3, 0, 7]
    worker:2   tell_all(7)  --+                  +--  [3, 0, 7]

At the end all leave together. One that is gone while another still evaluates or saves looks like a crash to that one:
TensorFlow notices that a task is missing and fails what is running.

Cost: one small all-reduce, a millisecond or two on one machine. Left out: agreement without those who are gone.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from tfdistedu.cluster.config.addresses import split
from tfdistedu.errors import DeadlineExceeded, TfdisteduError
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()


def n_workers(strategy: tf.distribute.Strategy) -> int:
    """Count the processes that keep step.

    Args:
        strategy: Any strategy.

    Returns:
        1 where one process has all replicas.

    """
    return strategy.num_replicas_in_sync // _replicas_here(strategy)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Tell whether this process is the one that writes.

    Args:
        strategy: Any strategy.

    Returns:
        Whether it is the chief, or worker 0 where there is none; with one process, yes.

    """
    resolver = getattr(strategy, "cluster_resolver", None)
    if resolver is None or n_workers(strategy) == 1:
        return True
    has_chief = "chief" in resolver.cluster_spec().jobs
    return resolver.task_type == "chief" if has_chief else resolver.task_id == 0


def task_names(strategy: tf.distribute.Strategy) -> list[str]:
    """Name the tasks that keep step.

    Args:
        strategy: Any strategy.

    Returns:
        The chief first, where there is one; one name for each number of `tell_all`.

    """
    resolver = getattr(strategy, "cluster_resolver", None)
    if resolver is None:
        return ["worker:0"]
    spec = resolver.cluster_spec().as_dict()
    return [f"{job}:{index}" for job in ("chief", "worker") for index in range(len(spec.get(job, ())))]


def tell_all(strategy: tf.distribute.Strategy, number: int, what: str = "tell_all") -> list[int]:
    """Tell all workers a number, and hear theirs. All must call it.

    Args:
        strategy: Any strategy that keeps step.
        number: This worker's.
        what: What is being agreed on, for the error.

    Returns:
        The number of each worker, in the order of `task_names`; with one process, its own alone.

    Raises:
        DeadlineExceeded: Not all called it within the timeout of the strategy's collectives.
        TfdisteduError: A worker is gone.

    """
    count = n_workers(strategy)
    if count == 1:
        return [number]
    here = _replicas_here(strategy)

    def of_replica(context: Any) -> tf.Tensor:
        index, first = divmod(context.replica_id_in_sync_group, here)
        return tf.one_hot(index, count, on_value=number if first == 0 else 0, off_value=0, dtype=tf.int64)

    values = strategy.experimental_distribute_values_from_function(of_replica)
    with naming_the_lost(strategy, what):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None).numpy().tolist()


@contextlib.contextmanager
def naming_the_lost(strategy: tf.distribute.Strategy, what: str) -> Iterator[None]:
    """Say who is gone when a collective fails: TensorFlow's own message names an address, or nobody.

    Args:
        strategy: The strategy whose collectives run inside.
        what: What is being done, for the error.

    Raises:
        TfdisteduError: Workers do not answer; the message names them.
        DeadlineExceeded: All answer, and some did not call the same.

    """
    try:
        yield
    except (
        tf.errors.DeadlineExceededError,
        tf.errors.UnavailableError,
        tf.errors.InternalError,
        tf.errors.AbortedError,
    ) as error:
        if n_workers(strategy) == 1:
            raise
        gone = silent_tasks(strategy)
        if gone:
            raise TfdisteduError(
                f"{what}: {', '.join(gone)} is gone: nobody answers there. Start the job again; it goes on from its "
                "newest checkpoint."
            ) from error
        if isinstance(error, tf.errors.DeadlineExceededError):
            raise DeadlineExceeded(
                f"{what}: not all of {', '.join(task_names(strategy))} came before the collectives' timeout, and all "
                "answer: one is stuck, or called something else. All workers must call it, not only the chief: "
                "`if chief: ...` around it makes the chief wait for the others."
            ) from error
        raise TfdisteduError(f"{what}: a collective failed ({str(error).splitlines()[0][:200]}).") from error


def silent_tasks(strategy: tf.distribute.Strategy, seconds: float = 1.0) -> list[str]:
    """Find the tasks at whose address nobody answers.

    Args:
        strategy: A strategy of several workers.
        seconds: How long each may take.

    Returns:
        Such as "worker:1 (host:2222)".

    """
    resolver = strategy.cluster_resolver
    spec = resolver.cluster_spec().as_dict()
    silent = []
    for name in task_names(strategy):
        job, _, index = name.partition(":")
        address = spec[job][int(index)]
        if (job, int(index)) == (resolver.task_type, resolver.task_id):
            continue
        try:
            socket.create_connection(split(address), timeout=seconds).close()
        except OSError:
            silent.append(f"{name} ({address})")
    return silent


def leave_together(strategy: tf.distribute.Strategy) -> None:
    """Return when all are done: the last thing that a program calls, after what only the chief does.

    Args:
        strategy: Any strategy that keeps step.

    Raises:
        DeadlineExceeded: Not all came.
        TfdisteduError: A worker is gone.

    """
    tell_all(strategy, 0, "leave_together")


class Preemption:
    """Notices that this process is to end (SIGTERM), so that all can save at one step and leave. A context manager.

    Clusters announce that they take a machine away by SIGTERM, and kill some ten seconds later. One worker hears of it;
    `Preemption.agreed` tells all.

    Example:
        >>> with Preemption() as preemption:
        ...     preemption.heard
        False

    """

    def __init__(self):
        self.heard = False
        self._before: Any = None

    def __enter__(self) -> Preemption:
        if threading.current_thread() is threading.main_thread():  # signals belong to it
            self._before = signal.signal(signal.SIGTERM, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def agreed(self, strategy: tf.distribute.Strategy) -> list[str]:
        """Ask all workers. All must call it, after the same step.

        Args:
            strategy: The strategy.

        Returns:
            The tasks that are to end; the same list on all.

        """
        told = tell_all(strategy, int(self.heard), "Preemption.agreed")
        return [task for task, heard in zip(task_names(strategy), told, strict=False) if heard]

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.heard = True


def _replicas_here(strategy: tf.distribute.Strategy) -> int:
    try:
        return len(strategy.extended.worker_devices)
    except RuntimeError:  # one device, without a strategy
        return 1
