"""TensorFlow listens at port 2222, on every machine and for every task."""

import json

ID = "one_port_for_all"
EXERCISE = "mend_texts"
BELIEVES = "TensorFlow listens at port 2222, on every machine and for every task."
TRUE = "Two processes of one machine cannot listen at one port; all jobs count."
QUESTION = "How many processes does carl run, and how many ports?"
CAUGHT_BY = "test_nothing_is_wrong_in_any_text_alone"
SEEN = "ours"


def mend_texts():
    cluster = {"chief": ["anna:2222"], "worker": ["bert:2222", "carl:2222"], "ps": ["carl:2222"]}
    tasks = [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]
    return {f"{job}:{i}": json.dumps({"cluster": cluster, "task": {"type": job, "index": i}}) for job, i in tasks}


def twin():
    machines = {"ps": ["carl"], "worker": ["bert", "carl"], "chief": ["anna"]}
    cluster = {job: [f"{machine}:2222" for machine in there] for job, there in machines.items()}
    numbers = {"evaluator:0": 0, "worker:1": 1, "worker:0": 0, "ps:0": 0, "chief:0": 0}
    return {
        name: json.dumps({"task": {"type": name[: name.index(":")], "index": i}, "cluster": cluster})
        for name, i in numbers.items()
    }
