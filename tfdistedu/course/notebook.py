"""How does one check an exercise in a notebook, where there is no file to test?

The idea: the same tests, the same texts; only the function comes from the cell.

    check("allreduce.ring_all_gather", ring_all_gather)

Costs: what the tests cost. Leaves out: progress, which is bound to `exercise.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfdistedu.course.lesson import find_lesson, find_root
from tfdistedu.course.runner import LessonTests
from tfdistedu.errors import BadInput


def check(exercise: str, function: Callable[..., Any]) -> bool:
    """Put a function to the tests of an exercise, and print what they say.

    Args:
        exercise: "slug.name".
        function: Your function.

    Returns:
        Whether all tests pass.

    Raises:
        BadInput: There is no such exercise here, or this is no function.

    """
    slug, _, name = exercise.partition(".")
    if not name or not callable(function):
        raise BadInput(f"write check('slug.name', function), not check({exercise!r}, {function!r}).")
    try:
        root = find_root(Path.cwd())
    except BadInput:
        root = packaged_lessons()  # nothing is written there, so a notebook can be anywhere
    lesson = find_lesson(root, slug)
    asked = lesson.exercise(name)
    failures = LessonTests(lesson).check(asked, function)
    print(failures[0].text() if failures else f"passed: {asked.id}")
    return not failures


def packaged_lessons() -> Path:
    """Return the lessons that lie beside the package: in a clone its own, in an installed wheel those that it carries.

    Returns:
        The folder.

    Raises:
        BadInput: The package was installed without them.

    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_lessons", package.parent / "lessons"):
        if any(folder.glob("*/lesson.toml")):
            return folder
    raise BadInput(f"{package} was installed without its lessons; install the wheel or a clone again.")
