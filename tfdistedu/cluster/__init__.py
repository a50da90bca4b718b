"""Real clusters of processes: TF_CONFIG, a launcher, a doctor, and what TensorFlow's messages mean.

    with LocalCluster(workers=2) as cluster:   # from tfdistedu.cluster.local
        cluster.run(train)                     on each task, results by name: {"worker:0": ..., "worker:1": ...}

- `local`, `faults`   the context manager `LocalCluster`, and what one can do to its tasks
- `server`, `task`    the process that imports TensorFlow once and forks, and what a fork does from its birth on
- `launch`            a script as a cluster, for `tfdistedu run`
- `testing`           the pytest fixture `local_cluster`
- `config`            TF_CONFIG as a value, and all that can be wrong with it
- `doctor`, `explain` what is wrong here, and what a message means

Importing any of them imports no TensorFlow: only the server and the tasks do.
"""

from __future__ import annotations

from typing import Any

_WHERE = {
    "LocalCluster": "tfdistedu.cluster.local",
    "Outcome": "tfdistedu.cluster.outcome",
    "TaskFailed": "tfdistedu.cluster.outcome",
}


def __getattr__(name: str) -> Any:
    """Import `LocalCluster` and its like when they are asked for: the doctor needs none of them."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_WHERE[name]), name)
