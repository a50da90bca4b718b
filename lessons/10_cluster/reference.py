"""Our answers to the exercises of this lesson. Try yours first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def mend_texts() -> dict[str, str]:
    """Return the TF_CONFIG of each of five processes, repaired."""
    cluster = {"chief": ["anna:2222"], "worker": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]}
    tasks = [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]
    return {f"{job}:{i}": json.dumps({"cluster": cluster, "task": {"type": job, "index": i}}) for job, i in tasks}


# --8<-- [start:tf_configs]
def tf_configs(hosts: Sequence[str], n_ps: int = 0, chief: bool = False, evaluator: bool = False) -> dict[str, str]:
    """Make the TF_CONFIG of every task: from its name, such as "worker:0", to the text.

    Args:
        hosts: One machine a task of the cluster: first the chief's, if there is one, then the workers', then those of
            the `n_ps` parameter servers. The first task of a machine listens at its port 2222, the second at 2223, ...
        n_ps: How many parameter servers there are.
        chief: Whether there is a chief.
        evaluator: Whether there is an evaluator too. It listens nowhere, so it has no machine in `hosts`.
    """
    # Step 1: give each task its job. The order is that of `hosts`.
    jobs = ["chief"] * chief + ["worker"] * (len(hosts) - chief - n_ps) + ["ps"] * n_ps
    # Step 2: give each task an address. Two processes of one machine cannot listen at one port.
    cluster: dict[str, list[str]] = {}
    for place, (job, host) in enumerate(zip(jobs, hosts, strict=True)):
        cluster.setdefault(job, []).append(f"{host}:{2222 + list(hosts[:place]).count(host)}")
    # Step 3: number the tasks. Each job counts for itself; the evaluator is one more, and is not listed.
    tasks = [(job, index) for job, addresses in cluster.items() for index in range(len(addresses))]
    tasks += [("evaluator", 0)] * evaluator
    # Step 4: write the texts. The cluster is the same in all, the task another one in each.
    return {f"{job}:{i}": json.dumps({"cluster": cluster, "task": {"type": job, "index": i}}) for job, i in tasks}


# --8<-- [end:tf_configs]


def predict_edges() -> dict[str, int]:
    """Predict the connections of a cluster of a chief, 4 workers and 2 parameter servers, with an evaluator beside it.

    Return {"processes": ..., "addresses_in_each_text": ..., "connections": ..., "cut_in_all_other_texts": ...,
    "cut_in_one_text": ...} with your numbers. A connection goes from one member of the cluster to another one, and the
    other way round it is a second one. The last two count the connections that are missing when the address of ps:1 is
    wrong: in the texts of all other processes, and in the text of worker:3 alone.
    """
    from tfdistedu.course.subject import load_module

    return load_module(Path(__file__).parent / "count_edges.py").count(4, 2, True, True)
