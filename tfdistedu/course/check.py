"""How does `learn check` run a lesson, and `learn use` put it to work?

The idea: `check` is pytest in a process of its own, with the same text and a deadline for the whole, so that nothing a
learner writes can hang it; `use` hands the passed functions to the lesson's own `use.py`.

Costs: one process. Leaves out: what a lesson does with the functions; see its `use.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tfdistedu.course.deadline import deadline
from tfdistedu.course.lesson import Exercise, Lesson
from tfdistedu.course.progress import Progress
from tfdistedu.course.runner import LessonTests
from tfdistedu.course.subject import choose_subject, resolve
from tfdistedu.errors import DeadlineExceeded

_MARGIN, _USE_SECONDS = 30.0, 300.0
_USAGE_ERROR = 4  # of pytest; ours is 2


def check_lesson(lesson: Lesson, exercise: Exercise | None, quiet: bool = False) -> tuple[int, dict[str, Any]]:
    """Run pytest on a lesson.

    Args:
        lesson: The lesson.
        exercise: Only this exercise.
        quiet: Whether pytest's text goes to stderr, so that stdout is free.

    Returns:
        The exit status (0: passed, 1: not) and a report as plain data.

    Raises:
        DeadlineExceeded: Pytest did not end; each test's own deadline should have ended it before.

    """
    seconds = _MARGIN + sum(each.deadline for each in lesson.exercises) * 2
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pytest", os.path.relpath(lesson.folder), "--report", str(report)]
        command += ["--exercise", exercise.name] if exercise else []
        sys.stdout.flush()
        try:
            done = subprocess.run(command, timeout=seconds, check=False, stdout=sys.stderr if quiet else None)
        except subprocess.TimeoutExpired:
            raise DeadlineExceeded(
                f"pytest did not end within {seconds:g} s on {lesson.folder}; it was killed."
            ) from None
        data = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {}
    return 2 if done.returncode == _USAGE_ERROR else done.returncode, data


def use_lesson(lesson: Lesson, progress: Progress, say: Callable[[str], None]) -> int:
    """Let a learner's functions drive the real thing.

    Args:
        lesson: The lesson.
        progress: What was passed; functions that were not passed are not used.
        say: Prints a text.

    Returns:
        The exit status.

    Raises:
        DeadlineExceeded: It took too long.

    """
    if not lesson.use:
        say(f"{lesson.slug} has nothing to use.")
        return 1
    function = resolve(lesson, lesson.use)
    wanted = [lesson.exercise(name) for name in function.__globals__["NEEDS"]]
    missing = [each for each in wanted if progress.state(lesson, each) not in ("passed", "stale")]
    if missing:
        say(f"First {missing[0].id} has to pass: tfdistedu learn check {lesson.slug}")
        return 1
    subject = choose_subject(lesson)
    tests = LessonTests(lesson)
    for each in wanted:  # a pass may be stale: what drives the real thing is looked at once more
        failures = tests.check(each, subject)
        if failures:
            say(failures[0].text())
            return 1
    mine = types.SimpleNamespace(**{each.name: subject.function(each) for each in wanted})
    with deadline(_USE_SECONDS, subject.file or ""):
        return int(function(mine, say) or 0)


def changes_of(file: Path, seconds: float = 0.3) -> Iterator[None]:
    """Give a turn now, and one after each change of a file.

    Args:
        file: The file.
        seconds: How often to look.

    Yields:
        Nothing.

    """
    seen = None
    while True:
        now = file.stat().st_mtime_ns if file.is_file() else None
        if now != seen and now is not None:
            yield
        seen = now
        time.sleep(seconds)
