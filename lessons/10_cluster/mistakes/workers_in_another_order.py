"""The order of the addresses does not matter; the task says who one is."""

import json

ID = "workers_in_another_order"
EXERCISE = "mend_texts"
BELIEVES = "The order of the addresses does not matter; the task says who one is."
TRUE = "The place in the list is the index. With lists in another order, two processes take the same address."
QUESTION = "By which number does a process find its own address, and in which list?"
CAUGHT_BY = "test_all_know_the_cluster_of_the_plan"
SEEN = "ours"


def mend_texts():
    cluster = {"chief": ["anna:2222"], "worker": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]}
    turned = {**cluster, "worker": ["carl:2222", "bert:2222"]}
    tasks = [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]
    return {
        f"{job}:{i}": json.dumps({"cluster": turned if i == 1 else cluster, "task": {"type": job, "index": i}})
        for job, i in tasks
    }


def twin():
    texts = {}
    for job in ("evaluator", "ps", "worker", "chief"):
        for index in range(1 + (job == "worker")):
            workers = ["bert:2222", "carl:2222"][:: -1 if index else 1]
            cluster = {"worker": workers, "chief": ["anna:2222"], "ps": ["carl:2223"]}
            texts[f"{job}:{index}"] = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
    return texts
