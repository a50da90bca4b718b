"""The chief is worker 0, so the other workers are 1 and 2."""

import json

ID = "workers_from_1"
EXERCISE = "mend_texts"
BELIEVES = "The chief is worker 0, so the other workers are 1 and 2."
TRUE = "Each job counts for itself. With a chief, too, the workers start at 0."
QUESTION = "Which address stands at place 0 of the workers' list, and whose index leads there?"
CAUGHT_BY = "test_nothing_is_wrong_in_any_text_alone"
SEEN = "https://github.com/deepsense-ai/Distributed-BA3C/issues/2"


def mend_texts():
    cluster = {"chief": ["anna:2222"], "worker": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]}
    found = [("chief:0", 0), ("worker:0", 1), ("worker:1", 2), ("ps:0", 0), ("evaluator:0", 0)]
    return {
        name: json.dumps({"cluster": cluster, "task": {"type": name.split(":")[0], "index": i}}) for name, i in found
    }


def twin():
    texts = {}
    for name in ("chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0"):
        job, index = name.split(":")
        task = {"index": int(index) + (job == "worker"), "type": job}
        cluster = {"ps": ["carl:2223"], "worker": ["bert:2222", "carl:2222"], "chief": ["anna:2222"]}
        texts[name] = json.dumps({"task": task, "cluster": cluster}, indent=2)
    return texts
