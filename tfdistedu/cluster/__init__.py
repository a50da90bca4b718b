"""Real clusters of processes on this machine: up in a fraction of a second, broken on purpose, gone without a trace.

    with LocalCluster(workers=2) as cluster:
        cluster.run(train)                     on each task, results by name: {"worker:0": ..., "worker:1": ...}

- `local`      the context manager `LocalCluster`: start, run a function on each task, collect
- `faults`     what one can do to a task: kill, pause, resume, restart, slow
- `server`     the process that imports TensorFlow once and forks a task in a hundredth of a second
- `task`       what a task does from its birth on
- `launch`     a script as a cluster, for `tfdistedu run`
- `testing`    the pytest fixture `local_cluster`

Importing any of them imports no TensorFlow: only the server and the tasks do.
"""

from tfdistedu.cluster.local import LocalCluster
from tfdistedu.cluster.outcome import Outcome, TaskFailed

__all__ = ["LocalCluster", "Outcome", "TaskFailed"]
