"""May a lesson go out? Only when it rejects what is wrong, by the right test and under the right name.

The idea: everything that could make an exercise unfair is tried. No `exercise.py` is ever read here.

    stub         every test fails with "not started", and with nothing else
    reference    every test passes
    mistake      rejected; its own test is among those that fail; it is called by its own name
    twin         the same mistake written otherwise: the same name
    all          no two do the same, and none does what the reference does

Costs: every test of an exercise, once for each of these. Leaves out: whether recorded files are up to date; see
`tfdistedu.course.record`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfdistedu.course.hints import hints_for
from tfdistedu.course.lesson import Exercise, Lesson, all_lessons
from tfdistedu.course.mistakes import MistakeFile, load_mistakes
from tfdistedu.course.runner import PATIENT, LessonTests
from tfdistedu.course.subject import choose_subject, resolve
from tfdistedu.errors import BadInput

LEAST_MISTAKES = 3
"""An exercise to implement or to repair has at least so many."""


@dataclass(frozen=True)
class Row:
    """What was tried, and what came out.

    Attributes:
        exercise: The exercise's id.
        subject: "stub", "reference", a mistake's id, "twin of ..." or what else was looked at.
        problem: What is wrong with the lesson, or "".
        seconds: How long it took.
    """

    exercise: str
    subject: str
    problem: str
    seconds: float


def check_lesson(lesson: Lesson, only: str = "") -> Iterator[Row]:
    """Try everything on one lesson.

    Args:
        lesson: The lesson.
        only: The name of one exercise; all if left out.

    Yields:
        One row for each thing tried.

    """
    tests, mistakes = LessonTests(lesson, PATIENT), load_mistakes(lesson)
    names = {exercise.name for exercise in lesson.exercises} | {e.grades for e in lesson.exercises if e.grades}
    for mistake in mistakes:
        if mistake.exercise not in names:
            yield Row(lesson.slug, mistake.id, f"there is no exercise {mistake.exercise!r}", 0.0)
    for name, (asked, _) in tests.all().items():
        if asked not in names:
            yield Row(lesson.slug, name, f"its argument {asked!r} is no exercise, so nothing ever runs it", 0.0)
    for exercise in [each for each in lesson.exercises if only in ("", each.name)]:
        mine = [mistake for mistake in mistakes if mistake.exercise == exercise.name]
        yield _timed(exercise, "stub", lambda e=exercise: _stub_problem(tests, e))
        yield _timed(exercise, "reference", lambda e=exercise: _reference_problem(tests, e))
        for mistake in mine:
            yield _timed(exercise, mistake.id, lambda e=exercise, m=mistake: _mistake_problem(tests, e, m, m.function))
            yield _timed(exercise, f"twin of {mistake.id}", lambda e=exercise, m=mistake: _twin_problem(tests, e, m))
        yield _timed(exercise, "hints and number", lambda e=exercise, m=mine: _whole_problem(lesson, e, m))
        others = {"the reference": resolve(lesson, exercise.reference)}
        yield _timed(exercise, "all differ", lambda e=exercise, m=mine, o=others: _same_problem(tests, e, e.name, m, o))
        if exercise.kind == "tests":
            yield from _check_graded(lesson, tests, exercise, mistakes)


def _check_graded(lesson: Lesson, tests: LessonTests, exercise: Exercise, mistakes: list[MistakeFile]) -> Iterator[Row]:
    """Try the wrong variants that a learner's tests are graded against."""
    bank = [mistake for mistake in mistakes if mistake.exercise == exercise.grades]
    for mistake in bank:
        yield _timed(exercise, mistake.id, lambda m=mistake: _bank_problem(lesson, exercise, m))
    others = {where: resolve(lesson, where) for where in exercise.right}
    yield _timed(
        exercise, f"all {exercise.grades} differ", lambda: _same_problem(tests, exercise, exercise.grades, bank, others)
    )


def _timed(exercise: Exercise, subject: str, find: Callable[[], str]) -> Row:
    """Make a row of what a function finds."""
    start = time.perf_counter()
    problem = find()
    return Row(exercise.id, subject, problem, time.perf_counter() - start)


def _stub_problem(tests: LessonTests, exercise: Exercise) -> str:
    failures = tests.check(exercise, choose_subject(tests.lesson, "stub"), everything=True)
    other = [failure for failure in failures if failure.kind != "not started"]
    if other:
        return f"{other[0].test} says {other[0].what!r}, not 'not started'"
    passed = set(tests.of(exercise)) - {failure.test for failure in failures}
    if passed:
        return f"{min(passed)} passes on the stub"
    return "" if failures else "it has no test"


def _reference_problem(tests: LessonTests, exercise: Exercise) -> str:
    failures = tests.check(exercise, choose_subject(tests.lesson, "reference"))
    return f"{failures[0].test} rejects it: {failures[0].what}" if failures else ""


def _mistake_problem(tests: LessonTests, exercise: Exercise, mistake: MistakeFile, function: Callable[..., Any]) -> str:
    failures = tests.check(exercise, function, everything=True)
    if not failures:
        return "no test rejects it"
    if mistake.caught_by not in [failure.test for failure in failures]:
        return f"{mistake.caught_by} does not reject it; {', '.join(f.test for f in failures)} do"
    named = failures[0].mistake
    if named is None:
        return "it is not called by its name (is recorded.json old? make record)"
    return "" if named.id == mistake.id else f"it is called {named.id}"


def _twin_problem(tests: LessonTests, exercise: Exercise, mistake: MistakeFile) -> str:
    if mistake.twin is None:
        return f"{mistake.file.name} has no function twin"
    twin = mistake.twin
    twin.__name__ = exercise.name  # texts call it so
    return _mistake_problem(tests, exercise, mistake, twin)


def _whole_problem(lesson: Lesson, exercise: Exercise, mistakes: list[MistakeFile]) -> str:
    try:
        hints_for(lesson, exercise)
    except BadInput as error:
        return str(error)
    if exercise.kind in ("implement", "repair") and len(mistakes) < LEAST_MISTAKES:
        return f"{len(mistakes)} mistakes; an exercise of kind {exercise.kind} has at least {LEAST_MISTAKES}"
    return ""


def _same_problem(
    tests: LessonTests,
    exercise: Exercise,
    probe: str,
    mistakes: list[MistakeFile],
    others: dict[str, Callable[..., Any]],
) -> str:
    seen = {tests.fingerprint(probe, function, exercise): name for name, function in others.items()}
    for mistake in mistakes:
        mine = tests.fingerprint(probe, mistake.function, exercise)
        if mine in seen:
            return f"{mistake.id} does what {seen[mine]} does"
        seen[mine] = mistake.id
    return ""


def _bank_problem(lesson: Lesson, exercise: Exercise, mistake: MistakeFile) -> str:
    from tfdistedu.course.grade import said

    try:
        resolve(lesson, exercise.reference)(mistake.function)
    except Exception as error:
        text = said(error)
        return "" if text.startswith(mistake.caught_by) else f"rejected by {text!r}, not by {mistake.caught_by!r}"
    return "the reference's tests let it through"


def table(rows: list[Row]) -> str:
    """Write rows as a table.

    Args:
        rows: The rows.

    Returns:
        One line a row, and one that sums up.

    """
    wide = max((len(row.subject) for row in rows), default=0)
    lines, last = [], ""
    for row in rows:
        if row.exercise != last:
            lines += [row.exercise]
            last = row.exercise
        lines.append(f"  {row.subject:<{wide}}  {row.seconds:6.2f} s  {row.problem or 'ok'}")
    bad = sum(bool(row.problem) for row in rows)
    return "\n".join([*lines, f"{len(rows)} looked at, {bad} wrong, {sum(row.seconds for row in rows):.1f} s"])


def main(arguments: list[str]) -> int:
    """Check all lessons of a folder and print the table.

    Args:
        arguments: The folder of the lessons, and slugs if not all are meant.

    Returns:
        The exit status.

    """
    root = Path(arguments[0] if arguments else "lessons").resolve()
    lessons = [lesson for lesson in all_lessons(root) if len(arguments) < 2 or lesson.slug in arguments[1:]]
    if not lessons:
        known = ", ".join(lesson.slug for lesson in all_lessons(root)) or "none"
        print(
            f"no such lesson in {root}: {' '.join(arguments[1:]) or 'it holds none'}; there are: {known}",
            file=sys.stderr,
        )
        return 2
    rows = [row for lesson in lessons for row in check_lesson(lesson)]
    print(table(rows))
    return int(any(row.problem for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
