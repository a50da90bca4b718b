"""How does `pytest lessons/NN_slug` test the right file, say so, stop in time, and tell it well?

The idea: pytest collects and reports; each item is one test of an exercise, run by `tfdistedu.course.runner`.

    testing lessons/07_allreduce/exercise.py         the first line, always
    .F                                               after a failure, the exercise's later tests wait
    ring_all_gather(3), round 1: rank 0 sends ...    where it first goes wrong, and no line of ours

`lessons/pytest.ini` loads this. Options: `--subject` for authors, `--all-tests` to go on after a failure.

Costs: nothing beside pytest. Leaves out: fixtures, parameters, assertion rewriting: tests here need none.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfdistedu.course.lesson import Exercise, Lesson, load_lesson
from tfdistedu.course.progress import Progress
from tfdistedu.course.runner import LessonTests
from tfdistedu.course.subject import Subject, choose_subject
from tfdistedu.course.wrong import Failure, wrapped
from tfdistedu.errors import BadInput

_COURSE = pytest.StashKey["_Course"]()


class _Course:
    """What one pytest run knows: which lessons, whose functions, and what has failed so far."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.which = config.getoption("subject")
        self.everything = config.getoption("all_tests")
        self.subjects: dict[Path, Subject] = {}
        self.tests: dict[Path, LessonTests] = {}
        self.failed: dict[str, Failure] = {}
        self.passed: dict[str, set[str]] = {}
        self.notes: list[str] = []
        self.waiting = 0
        folders = [folder for arg in config.args for folder in _lesson_folders(Path(arg.split("::")[0]))]
        for folder in dict.fromkeys(folders):
            self.subject(load_lesson(folder))

    def subject(self, lesson: Lesson) -> Subject:
        """Return whose functions are tested in a lesson."""
        if lesson.folder not in self.subjects:
            self.subjects[lesson.folder] = choose_subject(lesson, self.which)
        return self.subjects[lesson.folder]


class _Failed(Exception):
    """Carries a failure through pytest."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.what)
        self.failure = failure


class LessonFile(pytest.Module):
    """A lesson's `test_exercise.py`."""

    def _getobj(self) -> None:
        """Import nothing: the runner reads the file."""

    def collect(self) -> Iterator[pytest.Item]:
        """Give one item for each test."""
        course = self.config.stash[_COURSE]
        lesson = load_lesson(self.path.parent)
        tests = course.tests[lesson.folder] = LessonTests(lesson)
        for name, (asked, _) in tests.all().items():
            if self.config.getoption("exercise") in (None, asked):
                yield ExerciseTest.from_parent(self, name=name, exercise=lesson.exercise(asked))


class ExerciseTest(pytest.Item):
    """One test of one exercise."""

    def __init__(self, *, exercise: Exercise, **more: object) -> None:
        """Keep the exercise beside what pytest wants to know."""
        super().__init__(**more)
        self.exercise = exercise

    def runtest(self) -> None:
        """Run it; a failure becomes an exception that `repr_failure` can write."""
        course = self.config.stash[_COURSE]
        tests = course.tests[self.path.parent]
        subject = course.subject(tests.lesson)
        failure = tests.run(self.exercise, self.name, subject, hard=True)
        if isinstance(failure, str):
            course.notes.append(failure)
            failure = None
        if failure is None:
            course.passed.setdefault(self.exercise.id, set()).add(self.name)
            return
        if self.exercise.id not in course.failed:
            failure = course.failed[self.exercise.id] = tests.named(self.exercise, failure, subject)
        raise _Failed(failure)

    def repr_failure(self, excinfo: pytest.ExceptionInfo, style: object = None) -> str:
        """Write the three layers, and no traceback of ours."""
        if isinstance(excinfo.value, _Failed):
            return excinfo.value.failure.text()
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, None, str]:
        """Name the exercise and the test."""
        return self.path, None, f"{self.exercise.name}: {self.name}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("tfdistedu")
    group.addoption("--subject", default="exercise", help="what to test: exercise, stub, reference or a file")
    group.addoption("--exercise", default=None, metavar="NAME", help="only this exercise of the lesson")
    group.addoption("--report", default=None, metavar="FILE", help="write what failed as JSON")
    group.addoption("--all-tests", action="store_true", help="go on after an exercise's first failure")


def pytest_configure(config: pytest.Config) -> None:
    """Find the lessons, and make what a learner has not started."""
    try:
        config.stash[_COURSE] = _Course(config)
    except BadInput as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionstart(session: pytest.Session):
    """Say first which file is tested."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    for folder, subject in session.config.stash[_COURSE].subjects.items():
        where = os.path.relpath(subject.file or folder, session.config.invocation_params.dir)
        if reporter:
            reporter.write_line(f"testing {where}" + ("" if subject.file else " (references)"))
    return (yield)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> LessonFile | None:
    """Collect a lesson's tests our way."""
    if module_path.name == "test_exercise.py" and (module_path.parent / "lesson.toml").is_file():
        return LessonFile.from_parent(parent, path=module_path)
    return None


def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Leave out the later tests of an exercise that has failed."""
    course = item.config.stash[_COURSE]
    if isinstance(item, ExerciseTest) and item.exercise.id in course.failed and not course.everything:
        course.waiting += 1
        return True
    return None


def pytest_terminal_summary(terminalreporter: object, config: pytest.Config) -> None:
    """Write down what was passed, and say what waits."""
    course = config.stash[_COURSE]
    passed = []
    for folder, tests in course.tests.items():
        progress = Progress(folder.parent)
        for exercise in tests.lesson.exercises:
            if set(tests.of(exercise)) != course.passed.get(exercise.id, set()):
                continue
            passed.append(exercise.id)
            if course.subjects[folder].is_exercise:
                progress.passed(tests.lesson, exercise)
                terminalreporter.write_line(f"passed: {exercise.id}")
    for note in course.notes:
        terminalreporter.write_line(note)
    if course.waiting:
        plural = "test waits" if course.waiting == 1 else "tests wait"
        columns = shutil.get_terminal_size((100, 24)).columns
        terminalreporter.write_line(
            wrapped(f"{course.waiting} later {plural} for these (--all-tests runs them).", columns)
        )
    if config.getoption("report"):
        report = {"passed": passed, "failures": [failure.as_json() for failure in course.failed.values()]}
        Path(config.getoption("report")).write_text(json.dumps(report), encoding="utf-8")


def _lesson_folders(path: Path) -> list[Path]:
    """Return the lessons at, above or below a path."""
    path = path.resolve()
    for folder in (path, *path.parents):
        if (folder / "lesson.toml").is_file():
            return [folder]
    return sorted(file.parent for file in path.glob("*/lesson.toml"))
