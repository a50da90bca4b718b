"""What the page of this lesson shows: `make record` runs it, and tests run it again."""

import time
from pathlib import Path

from tfdistedu.course.crash_disk import Disk
from tfdistedu.course.diagnose_crash import EPOCHS, N_BATCHES, run_killed, undisturbed
from tfdistedu.course.lesson import load_lesson
from tfdistedu.course.mistakes import load_mistakes
from tfdistedu.course.runner import LessonTests
from tfdistedu.course.subject import choose_subject, load_module

FOLDER = Path(__file__).parent
KILLED_AT = 29  # a moment in the second epoch


def reference():
    """Return our answer."""
    lesson = load_lesson(FOLDER)
    return choose_subject(lesson, "reference").function(lesson.exercise("train"))


def found():
    """Return the training as it is found."""
    return next(mistake for mistake in load_mistakes(load_lesson(FOLDER)) if mistake.id == "as_found").function


def picture():
    """Draw which batches each run makes, for the run nobody kills, ours and the one that is found."""
    lines = [
        ("nobody kills it", run_killed(reference(), None)[2]),
        ("killed, ours", run_killed(reference(), KILLED_AT)[2]),
        ("killed, as found", run_killed(found(), 20)[2]),
    ]
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 150" role="img" id="runs" '
        'aria-label="The batches that each run makes, one square a step">',
        "<style>#runs { font-family: ui-sans-serif, system-ui, sans-serif; font-size: 12px; } "
        "#runs .ink { fill: #1c1e21; } #runs .first { fill: #5c7cfa; } #runs .second { fill: #e8871e; } "
        "#runs .number { fill: #ffffff; } "
        "@media (prefers-color-scheme: dark) { #runs .ink { fill: #e8eaed; } }</style>",
        '<text class="ink" x="10" y="20">Batches, step by step: first run blue, second run orange</text>',
    ]
    for row, (name, runs) in enumerate(lines):
        y, x = 36 + 36 * row, 130
        parts.append(f'<text class="ink" x="10" y="{y + 16}">{name}</text>')
        for number, batches in enumerate(runs):
            for batch in batches:
                parts.append(f'<rect class="{("first", "second")[number]}" x="{x}" y="{y}" width="20" height="22"/>')
                parts.append(f'<text class="number" x="{x + 10}" y="{y + 15}" text-anchor="middle">{batch}</text>')
                x += 22
            x += 8
    return "\n".join([*parts, "</svg>"]) + "\n"


def text(weights):
    """Write weights as one reads them."""
    return "[" + ", ".join(f"{each:.4f}" for each in weights) + "]"


def crash():
    """Return how the training ends that is found, and ours, killed at the same moment."""
    lines = [f"nobody kills it      weights {text(undisturbed())}"]
    for name, function, moment in (("as found, killed", found(), 20), ("ours, killed", reference(), KILLED_AT)):
        came, disk, runs = run_killed(function, moment)
        lines.append(f"{name:<20} weights {text(came)}, {len(runs[0])} + {len(runs[-1])} steps")
        lines.append(f"{'':<20} killed {disk.where}")
    return "\n".join(lines) + "\n"


def moments():
    """Return at how many moments our training is killed in the tests."""
    disk = run_killed(reference(), None)[1]
    return f"{disk.moment}"


def check_seconds():
    """Return how long the tests take on the references; the start of Python and pytest not counted."""
    lesson = load_lesson(FOLDER)
    tests, subject, start = LessonTests(lesson), choose_subject(lesson, "reference"), time.perf_counter()
    for exercise in lesson.exercises:
        assert not tests.check(exercise, subject)
    return f"{time.perf_counter() - start:.2f} s"


def shown():
    """Run every line that the page shows."""
    count = load_module(FOLDER / "sibling.py").count_words
    disk = Disk()
    assert count(disk, ["one two", "three"]) == 3
    assert count(disk, ["one two", "three", "four five six"]) == 6
    right = undisturbed()
    assert run_killed(reference(), KILLED_AT)[0].tobytes() == right.tobytes()
    assert run_killed(found(), None)[0].tobytes() == right.tobytes()
    assert run_killed(found(), 20)[0].tobytes() != right.tobytes()
    assert N_BATCHES * EPOCHS == 12


OUTPUTS = {"runs.svg": picture, "crash.txt": crash}
VALUES = {"moments": moments}
TIMED = {"check": check_seconds}
