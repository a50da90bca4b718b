"""What the page of this lesson shows: `make record` runs it, and tests run it again."""

import time
from pathlib import Path

from tfdistedu.course.lesson import load_lesson
from tfdistedu.course.runner import LessonTests
from tfdistedu.course.subject import choose_subject, load_module

FOLDER = Path(__file__).parent
NAIVE = load_module(FOLDER / "naive.py").naive_share
COUNT = load_module(FOLDER / "count_batches.py")
N_WORKERS, N_EXAMPLES = 3, 30
COLOURS = ("#c81e1e", "#9aa3ad", "#e8871e", "#b5179e")  # never, once, twice, three times


def seen_naively():
    """Return how often each of 30 examples is seen when three workers shuffle by themselves."""
    shares = [NAIVE(worker, N_WORKERS, N_EXAMPLES).tolist() for worker in range(N_WORKERS)]
    return [sum(share.count(example) for share in shares) for example in range(N_EXAMPLES)]


def picture():
    """Draw how often each example is seen: one square an example."""
    counts, size = seen_naively(), 17
    squares = [
        f'<rect x="{20 + example * size}" y="44" width="{size - 2}" height="{size - 2}" fill="{COLOURS[count]}"/>'
        f'<text x="{20 + example * size + size / 2 - 1}" y="57" text-anchor="middle">{count}</text>'
        for example, count in enumerate(counts)
    ]
    never, more = counts.count(0), sum(count > 1 for count in counts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 550 90" role="img" id="seen" '
        f'aria-label="Of 30 examples {never} are seen by nobody and {more} more than once">\n'
        "<style>#seen { font-family: ui-sans-serif, system-ui, sans-serif; font-size: 11px; } "
        "#seen text { fill: #ffffff; } #seen .ink { fill: #1c1e21; font-size: 13px; } "
        "@media (prefers-color-scheme: dark) { #seen .ink { fill: #e8eaed; } }</style>\n"
        '<text class="ink" x="20" y="26">How often each of 30 examples is seen in one epoch, by three workers</text>\n'
        + "\n".join(squares)
        + f'\n<text class="ink" x="20" y="82">{never} by nobody, {more} more than once</text>\n</svg>\n'
    )


def table():
    """Return how the page's epoch falls on workers."""
    return COUNT.report(20, 6, 3)


def never():
    """Return how many examples nobody sees."""
    return f"{seen_naively().count(0)}"


def more_than_once():
    """Return how many examples are seen more than once."""
    return f"{sum(count > 1 for count in seen_naively())}"


def check_seconds():
    """Return how long the tests take on the references; the start of Python and pytest not counted."""
    lesson = load_lesson(FOLDER)
    tests, subject, start = LessonTests(lesson), choose_subject(lesson, "reference"), time.perf_counter()
    for exercise in lesson.exercises:
        assert not tests.check(exercise, subject)
    return f"{time.perf_counter() - start:.2f} s"


def shown():
    """Run every line that the page shows."""
    assert sum(seen_naively()) == N_EXAMPLES  # the naive share looks right: as many examples as there are
    files = load_module(FOLDER / "sibling.py").files_of_worker
    names = [f"part-{number}" for number in range(7)]
    shares = [files(worker, 3, names, 7, 0) for worker in range(3)]
    assert sorted(name for share in shares for name in share) == names
    try:
        files(0, 8, names, 7, 0)
    except ValueError:
        pass
    else:
        raise AssertionError("too few files are meant to be refused")
    lesson = load_lesson(FOLDER)
    batches = choose_subject(lesson, "reference").function(lesson.exercise("batches_of_worker"))
    assert sum(len(batch) for worker in range(3) for batch in batches(worker, 3, 20, 6, 7, 0)) == 20


OUTPUTS = {"seen.svg": picture, "table.txt": table}
VALUES = {"never": never, "more_than_once": more_than_once}
TIMED = {"check": check_seconds}
