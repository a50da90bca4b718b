"""The same group on real workers: a `MultiWorkerMirroredStrategy` adds up, over gRPC, in processes of their own."""

import json
import linecache
import os
import re
import time
from pathlib import Path

from tfdistedu.errors import DeadlineExceeded

_LOOK = 0.1  # seconds between two looks
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>\S+)')


class StrategyGroup:
    """One worker's end: `all_reduce` over all workers, matched by TensorFlow."""

    def __init__(self, timeout=60.0):
        """Meet the other workers; after `timeout` seconds an all-reduce that does not end fails."""
        from tfdistedu.synchronous.multi_worker import multi_worker_strategy

        self.strategy = multi_worker_strategy(timeout=timeout)
        task = json.loads(os.environ["TF_CONFIG"])["task"]
        self.rank, self.n_ranks = task["index"], self.strategy.num_replicas_in_sync

    def all_reduce(self, name, value):
        """Add up over all workers. The name is for people: TensorFlow never sees it."""
        import tensorflow as tf

        def meet():
            return tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(value, tf.float64))

        total = self.strategy.experimental_local_results(self.strategy.run(meet))[0].numpy()
        return total if total.ndim else float(total)


def work(job, inputs, *more):
    """Run a job as this worker, with its own input; what it logs is this worker's output."""
    group = StrategyGroup()
    return job(group, inputs[group.rank], *more, lambda text: print(f"log {text}", flush=True))


def hung(cluster, running, logs, seconds=90.0):
    """Wait until every worker has logged so much and those that are to finish have; then ask where the others stand."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        waiting = running.pending()
        now = {task: lines_of(cluster.output(task)) for task in cluster.tasks}
        if now == logs and all((task in waiting) != (lines[-1:] == ["finished"]) for task, lines in logs.items()):
            time.sleep(5 * _LOOK)  # the last line was written before the call that hangs
            return cluster.stacks(*waiting)
        time.sleep(_LOOK)
    raise DeadlineExceeded(f"the job did not come to where it hangs within {seconds:g} s; it is at {now}.")


def lines_of(output):
    """Return what a worker has logged."""
    return [line.removeprefix("log ") for line in output.splitlines() if line.startswith("log ")]


def own_frames(stacks, file):
    """Return the frames of the main thread: the innermost call, and those that lie in one file."""
    part = next(part for part in stacks.split("\n\n") if part.startswith("Current thread"))
    frames = [match.groupdict() for match in map(_FRAME.search, part.splitlines()) if match]
    found = [f"{frames[0]['name']} ({os.path.basename(frames[0]['file'])})"]
    for frame in frames:
        if Path(frame["file"]).resolve() == Path(file).resolve():
            text = linecache.getline(frame["file"], int(frame["line"])).strip()
            found.append(f"{os.path.basename(frame['file'])}:{frame['line']} in {frame['name']}: {text}")
    return found
