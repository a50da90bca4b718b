"""The text is the same on all machines; that is what makes them one cluster."""

import json

ID = "one_text_for_all"
EXERCISE = "mend_texts"
BELIEVES = "The text is the same on all machines; that is what makes them one cluster."
TRUE = "The cluster is the same in all. The task is another one in each: it says who reads it."
QUESTION = "Five processes read this. Which of them is worker:1?"
CAUGHT_BY = "test_each_process_is_who_it_is"
SEEN = "ours"


def mend_texts():
    cluster = {"chief": ["anna:2222"], "worker": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]}
    text = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    return dict.fromkeys(["chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0"], text)


def twin():
    text = (
        '{"task": {"index": 0, "type": "chief"}, "cluster": {"ps": ["carl:2223"], "chief": ["anna:2222"],'
        ' "worker": ["bert:2222", "carl:2222"]}}'
    )
    return dict.fromkeys(("evaluator:0", "ps:0", "worker:1", "worker:0", "chief:0"), text)
