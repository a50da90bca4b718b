"""A process writes localhost for itself; that is where it listens."""

import json

ID = "localhost_is_me"
EXERCISE = "mend_texts"
BELIEVES = "A process writes localhost for itself; that is where it listens."
TRUE = "The addresses are for the others, too. localhost is whichever machine reads it."
QUESTION = "carl dials ps:0 at carl:2223. Whom would bert reach at localhost:2223?"
CAUGHT_BY = "test_nothing_is_wrong_in_any_text_alone"
SEEN = "ours"


def mend_texts():
    texts = {}
    for job, index in [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]:
        cluster = {"chief": ["anna:2222"], "worker": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]}
        if job in cluster:
            cluster[job][index] = "localhost:" + cluster[job][index].split(":")[1]
        texts[f"{job}:{index}"] = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
    return texts


def twin():
    places = {"chief:0": "anna:2222", "worker:0": "bert:2222", "worker:1": "carl:2222", "ps:0": "carl:2223"}

    def text(me):
        seen = {name: at.replace(at[:4], "localhost") if name == me else at for name, at in places.items()}
        job, index = me.split(":")
        cluster = {"worker": [seen["worker:0"], seen["worker:1"]], "ps": [seen["ps:0"]], "chief": [seen["chief:0"]]}
        return json.dumps({"cluster": cluster, "task": {"type": job, "index": int(index)}})

    return {name: text(name) for name in [*places, "evaluator:0"]}
