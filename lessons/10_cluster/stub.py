# stub.py is made by `make record`; your copy of it is exercise.py, and nothing overwrites that.
"""Lesson 10_cluster: A TF_CONFIG for every task.

How does each process of a cluster learn who there is, and why does a job hang when one of them was told otherwise?

In exercise.py, replace what says "not started". Then: pytest lessons/10_cluster
"""

from __future__ import annotations

import json
from collections.abc import Sequence


def mend_texts() -> dict[str, str]:
    """Repair five TF_CONFIGs. Each was written by somebody else, for one process of the same cluster.

    The plan: anna runs the chief, bert and carl run worker:0 and worker:1, and carl runs the parameter server ps:0 too.
    Each machine's first task listens at port 2222, the second one at 2223. An evaluator runs beside them on anna; it
    listens nowhere.

    Return the TF_CONFIG of each process, a text, under the name that the process has in the plan.
    """
    raise NotImplementedError("cluster.mend_texts: not started")  # take this line out and repair the rest
    return {
        "chief:0": '{"cluster": {"master": ["anna:2222"], "workers": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]},'
        ' "task": {"type": "master", "index": 0}}',
        "worker:0": '{"cluster": {"chief": ["anna:2222"], "worker": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]},'
        ' "task": {"type": "worker", "index": 1}}',
        "worker:1": '{"cluster": {"chief": ["anna:2222"], "worker": ["bert:2222", "http://carl:2222"], "ps": ["carl"]},'
        ' "task": {"type": "worker", "index": 2}}',
        "ps:0": "{'cluster': {'chief': ['anna:2222'], 'worker': ['bert:2222', 'carl:2222'], 'ps': ['localhost:2223']},"
        " 'task': {'type': 'ps', 'index': 0}}",
        "evaluator:0": "{cluster: {chief: [anna:2222], worker: [bert:2222, carl:2222], ps: [carl:2222],"
        " evaluator: [anna:2223]}, task: {type: evaluator, index: 0}}",
    }


def tf_configs(hosts: Sequence[str], n_ps: int = 0, chief: bool = False, evaluator: bool = False) -> dict[str, str]:
    """Make the TF_CONFIG of every task: from its name, such as "worker:0", to the text.

    Args:
        hosts: One machine a task of the cluster: first the chief's, if there is one, then the workers', then those of
            the `n_ps` parameter servers. The first task of a machine listens at its port 2222, the second at 2223, ...
        n_ps: How many parameter servers there are.
        chief: Whether there is a chief.
        evaluator: Whether there is an evaluator too. It listens nowhere, so it has no machine in `hosts`.
    """
    # Step 1: give each task its job.
    # Step 2: give each task an address.
    # Step 3: number the tasks.
    # Step 4: write the texts.
    raise NotImplementedError("cluster.tf_configs: not started")


def predict_edges() -> dict[str, int]:
    """Predict the connections of a cluster of a chief, 4 workers and 2 parameter servers, with an evaluator beside it.

    Return {"processes": ..., "addresses_in_each_text": ..., "connections": ..., "cut_in_all_other_texts": ...,
    "cut_in_one_text": ...} with your numbers. A connection goes from one member of the cluster to another one, and the
    other way round it is a second one. The last two count the connections that are missing when the address of ps:1 is
    wrong: in the texts of all other processes, and in the text of worker:3 alone.
    """
    raise NotImplementedError("cluster.predict_edges: not started")
