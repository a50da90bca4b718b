"""A text that looks like the others is right."""

ID = "as_found"
EXERCISE = "mend_texts"
BELIEVES = "A text that looks like the others is right."
TRUE = "Each of the five is wrong in its own way, and few of these ways stop a program at once."
QUESTION = "Which of the five does a JSON reader accept, and what do these say about who each process is?"
CAUGHT_BY = "test_each_text_is_json"
SEEN = "ours"


def mend_texts() -> dict[str, str]:
    """Repair five TF_CONFIGs. Each was written by somebody else, for one process of the same cluster.

    The plan: anna runs the chief, bert and carl run worker:0 and worker:1, and carl runs the parameter server ps:0 too.
    Each machine's first task listens at port 2222, the second one at 2223. An evaluator runs beside them on anna; it
    listens nowhere.

    Return the TF_CONFIG of each process, a text, under the name that the process has in the plan.
    """
    # --8<-- [start:found]
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
    # --8<-- [end:found]


def twin():
    who = '"chief": ["anna:2222"]'
    both = '"worker": ["bert:2222", "carl:2222"]'
    python = {
        "cluster": {"worker": ["bert:2222", "carl:2222"], "chief": ["anna:2222"], "ps": ["localhost:2223"]},
        "task": {"index": 0, "type": "ps"},
    }
    bad = '"worker": ["bert:2222", "http://carl:2222"], "ps": ["carl"]'
    return {
        "chief:0": '{"cluster": {"master": ["anna:2222"], "workers": ["bert:2222", "carl:2222"], "ps": ["carl:2223"]},'
        '"task": {"index": 0, "type": "master"}}',
        "worker:0": f'{{"cluster": {{{both}, {who}, "ps": ["carl:2223"]}}, "task": {{"index": 1, "type": "worker"}}}}',
        "worker:1": f'{{"cluster": {{{who}, {bad}}}, "task": {{"index": 2, "type": "worker"}}}}',
        "ps:0": str(python),
        "evaluator:0": "{cluster: {worker: [bert:2222, carl:2222], chief: [anna:2222], ps: [carl:2222], "
        "evaluator: [anna:2223]}, task: {index: 0, type: evaluator}}",
    }
