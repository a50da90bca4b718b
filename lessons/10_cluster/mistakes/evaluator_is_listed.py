"""The evaluator is a process of the job, so it stands in the cluster like the others."""

import json

ID = "evaluator_is_listed"
EXERCISE = "mend_texts"
BELIEVES = "The evaluator is a process of the job, so it stands in the cluster like the others."
TRUE = "The cluster lists who listens. The evaluator runs no server, so a coordinator that dials it waits for ever."
QUESTION = "At which port does the evaluator listen, and who would answer there?"
CAUGHT_BY = "test_nothing_is_wrong_in_any_text_alone"
SEEN = "https://github.com/tensorflow/tensorflow/issues/46169"


def mend_texts():
    cluster = {"chief": ["anna:2222"], "worker": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]}
    cluster["evaluator"] = ["anna:2223"]
    tasks = [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]
    return {f"{job}:{i}": json.dumps({"cluster": cluster, "task": {"type": job, "index": i}}) for job, i in tasks}


def twin():
    jobs = {
        "evaluator": ["anna:2223"],
        "ps": ["carl:2223"],
        "chief": ["anna:2222"],
        "worker": ["bert:2222", "carl:2222"],
    }
    texts = {}
    for job, addresses in jobs.items():
        for index, _ in enumerate(addresses):
            texts[f"{job}:{index}"] = json.dumps({"task": {"index": index, "type": job}, "cluster": jobs})
    return texts
