"""If the text can be read as JSON, it is right."""

import json

ID = "json_is_enough"
EXERCISE = "mend_texts"
BELIEVES = "If the text can be read as JSON, it is right."
TRUE = "TensorFlow reads it and looks at little. Most of what is wrong here passes, and the job hangs later."
QUESTION = "Which processes of the plan would have nobody to talk to, though every text can be read?"
CAUGHT_BY = "test_nothing_is_wrong_in_any_text_alone"
SEEN = "ours"


def mend_texts():
    jobs = {"chief": ["anna:2222"], "worker": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]}
    old = {"master": ["anna:2222"], "workers": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]}
    scheme = {**jobs, "worker": ["bert:2222", "http://carl:2222"], "ps": ["carl"]}
    listed = {**jobs, "ps": ["carl:2222"], "evaluator": ["anna:2223"]}
    return {
        "chief:0": json.dumps({"cluster": old, "task": {"type": "master", "index": 0}}),
        "worker:0": json.dumps({"cluster": jobs, "task": {"type": "worker", "index": 1}}),
        "worker:1": json.dumps({"cluster": scheme, "task": {"type": "worker", "index": 2}}),
        "ps:0": json.dumps({"cluster": {**jobs, "ps": ["localhost:2223"]}, "task": {"type": "ps", "index": 0}}),
        "evaluator:0": json.dumps({"cluster": listed, "task": {"type": "evaluator", "index": 0}}),
    }


def twin():
    def text(job, index, workers, ps, **more):
        chief = more.pop("chief", "chief")
        names = {"chief": "worker", "master": "workers"}
        cluster = {chief: ["anna:2222"], names[chief]: workers, "ps": [ps], **more}
        return json.dumps({"task": {"type": job, "index": index}, "cluster": cluster}, indent=1)

    both = ["bert:2222", "carl:2222"]
    return {
        "evaluator:0": text("evaluator", 0, both, "carl:2222", evaluator=["anna:2223"]),
        "ps:0": text("ps", 0, both, "localhost:2223"),
        "worker:1": text("worker", 2, ["bert:2222", "http://carl:2222"], "carl"),
        "worker:0": text("worker", 1, both, "carl:2223"),
        "chief:0": text("master", 0, both, "carl:2223", chief="master"),
    }
