"""What the page of this lesson shows: `make record` runs it, on real workers, and tests run it again."""

import time
from pathlib import Path

import numpy as np

from tfdistedu.course.graph_svg import Arrow, graph_svg
from tfdistedu.course.lesson import load_lesson
from tfdistedu.course.mistakes import load_mistakes
from tfdistedu.course.runner import LessonTests
from tfdistedu.course.subject import choose_subject, load_module
from tfdistedu.links.meeting import Hang, WrongMeeting, run_group

FOLDER = Path(__file__).parent
WATCH = load_module(FOLDER / "watch_hang.py")


def picture():
    """Draw who waits for whom in the page's job."""
    calls, logs, hang = WATCH.play(**WATCH.PAGE)
    names = [f"worker:{rank}" for rank in range(len(calls))]
    arrows = [
        Arrow(names[rank], names[other], "waits for") for rank, others in hang.waits_for.items() for other in others
    ]
    notes = {name: f"{len(made)} calls, wrote: {log[-1]}" for name, made, log in zip(names, calls, logs, strict=True)}
    return graph_svg("Who waits for whom", names, arrows, notes)


def stacks_of_the_page():
    """Return where three real workers stand when the page's job hangs."""
    return WATCH.report(*WATCH.real(**WATCH.PAGE))


def stacks_of_the_exercise():
    """Return where three real workers stand when the exercise's job hangs."""
    return WATCH.report(*WATCH.real(**WATCH.EXERCISE))


def meetings():
    """Return who met whom in the page's job."""
    return "\n".join(WATCH.meetings(WATCH.play(**WATCH.PAGE)[0])) + "\n"


def check_seconds():
    """Return how long the tests take on the references; the start of Python and pytest not counted."""
    lesson = load_lesson(FOLDER)
    tests, subject, start = LessonTests(lesson), choose_subject(lesson, "reference"), time.perf_counter()
    for exercise in lesson.exercises:
        assert not tests.check(exercise, subject)
    return f"{time.perf_counter() - start:.1f} s"


def shown():
    """Run every line that the page shows."""
    calls, _, hang = WATCH.play(**WATCH.PAGE)
    assert hang.waits_for == {0: (1, 2)}
    assert [len(made) for made in calls] == [7, 6, 6]
    losses = [iter([3.0, 1.0, 1.0]), iter([3.0, 3.0, 1.0])]
    stop = load_module(FOLDER / "sibling.py").train_until_good
    assert run_group(lambda group, mine: stop(group, lambda: next(mine), 2.0), losses).results == [3, 3]
    lesson = load_lesson(FOLDER)
    train = choose_subject(lesson, "reference").function(lesson.exercise("train"))
    assert run_group(train, [[np.ones(2)], []]).results[0] == (0.5, [1.0], 2.0)
    (found,) = [mistake for mistake in load_mistakes(lesson) if mistake.id == "as_found"]
    for by_name in (True, False):
        try:
            run_group(found.function, [[np.ones(2)], [np.ones(2)]], by_name=by_name)
        except (WrongMeeting, Hang):
            continue
        raise AssertionError("it is meant to fail")


OUTPUTS = {
    "waits.svg": picture,
    "stacks_page.txt": stacks_of_the_page,
    "stacks_exercise.txt": stacks_of_the_exercise,
    "meetings.txt": meetings,
}
VALUES = {}
TIMED = {"check": check_seconds}
