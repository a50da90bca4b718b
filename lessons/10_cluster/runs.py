"""What the page of this lesson shows: `make record` runs it, and tests run it again."""

import json
import time
from pathlib import Path

from tfdistedu.cluster.config import parse
from tfdistedu.course.graph_svg import Arrow, graph_svg
from tfdistedu.course.lesson import load_lesson
from tfdistedu.course.runner import LessonTests
from tfdistedu.course.subject import choose_subject, load_module

FOLDER = Path(__file__).parent
COUNT = load_module(FOLDER / "count_edges.py")
MISSING = load_module(FOLDER / "sibling.py").missing_edges

# The page's cluster: two workers and a parameter server, each on a machine of its own.
ADDRESSES = {"worker": ["bert:2222", "carl:2222"], "ps": ["dora:2222"]}


def text(cluster, job, index):
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


def texts_with_a_mistake():
    """Return three texts, each without a finding; two are of yesterday, when ps:0 and worker:1 were elsewhere."""
    return {
        "worker:0": text({**ADDRESSES, "ps": ["dora:2223"]}, "worker", 0),
        "worker:1": text(ADDRESSES, "worker", 1),
        "ps:0": text({**ADDRESSES, "worker": ["bert:2222", "emil:2222"]}, "ps", 0),
    }


def picture():
    """Draw every connection of the page's cluster, the missing ones crossed out."""
    texts = texts_with_a_mistake()
    missing = {(who, whom) for who, whom, _ in MISSING(texts)}
    arrows = [Arrow(who, whom, missing=(who, whom) in missing) for who, whom in COUNT.edges(texts)]
    return graph_svg("Who dials whom, and gets no answer", list(texts), arrows)


def missing():
    """Return what the sibling finds in the same three texts."""
    texts = texts_with_a_mistake()
    lines = [f"{name}: {len(parse(one).errors)} errors in its text" for name, one in texts.items()]
    lines += [f"{who} dials {whom} at {where}, and it is not there" for who, whom, where in MISSING(texts)]
    return "\n".join(lines) + "\n"


def found():
    """Return what is found in texts that the naive reading accepts."""
    lines = []
    for cluster, index in (
        (ADDRESSES, -1),
        (ADDRESSES, 1.9),
        ({**ADDRESSES, "worker": ["bert:2222", "10.0.0.256:2222"]}, 1),
        ({**ADDRESSES, "worker": ["bert:2222", "carl"]}, 1),
    ):
        one = text(cluster, "worker", index)
        listens = load_module(FOLDER / "naive.py").where_do_i_listen(one)
        error = parse(one).errors[0]
        lines += [f"read without looking: I listen at {listens}", f"  [{error.code}] {error.where}: {error.message}"]
    return "\n".join(lines) + "\n"


def check_seconds():
    """Return how long the tests take on the references; the start of Python and pytest not counted."""
    lesson = load_lesson(FOLDER)
    tests, subject, start = LessonTests(lesson), choose_subject(lesson, "reference"), time.perf_counter()
    for exercise in lesson.exercises:
        assert not tests.check(exercise, subject)
    return f"{time.perf_counter() - start:.2f} s"


def shown():
    """Run every line that the page shows."""
    assert load_module(FOLDER / "naive.py").where_do_i_listen(text(ADDRESSES, "worker", -1)) == "carl:2222"
    assert len(MISSING(texts_with_a_mistake())) > 0
    # An evaluator dials nobody.
    assert not MISSING(COUNT.texts_of(2, 1, True, True))
    lesson = load_lesson(FOLDER)
    configs = choose_subject(lesson, "reference").function(lesson.exercise("tf_configs"))
    assert len(configs(["a", "b", "a"], 1, True, True)) == 4


OUTPUTS = {"edges.svg": picture, "missing.txt": missing, "found.txt": found}
VALUES = {
    "connections_3": lambda: str(COUNT.count(2, 1)["connections"]),
    "connections_100": lambda: f"{COUNT.count(100, 0)['connections']:,}",
}
TIMED = {"check": check_seconds}
