"""How is one function put to an exercise's tests, in pytest, in a notebook and in the author's gate alike?

The idea: a test of an exercise is a plain function with one argument, the function under test, whose name is the
exercise's. So nothing is needed to run it but a call.

    def test_one_rank_sends_nothing(ring_all_gather):        first test ... last test: smallest case first,
        schedule = ring_all_gather(1)                        and the first failure ends the exercise
        ...

Costs: what the function costs; one fingerprint more when it fails.

Leaves out: printing; see `tfdistedu.course.plugin` for pytest.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfdistedu.course.deadline import deadline, own_lines
from tfdistedu.course.lesson import Exercise, Lesson
from tfdistedu.course.subject import CannotBeRead, Subject, load_module
from tfdistedu.course.wrong import Failure, Mistake, Wrong
from tfdistedu.errors import DeadlineExceeded

PATIENT = 6.0
"""The patience of authors."""

RECORDED = "recorded.json"
NO_END = "it does not end"


class LessonTests:
    """The tests of one lesson, and what was recorded of its mistakes.

    Attributes:
        lesson: The lesson.
        patience: By how much deadlines are longer.
    """

    lesson: Lesson
    patience: float

    def __init__(self, lesson: Lesson, patience: float = 1.0) -> None:
        """Read `test_exercise.py` and `recorded.json`.

        Args:
            lesson: The lesson.
            patience: By how much deadlines are longer. Authors take more than 1: what is recorded must not depend on
                what else the machine does.

        """
        self.lesson, self.patience = lesson, patience
        self._module = load_module(lesson.folder / "test_exercise.py")
        file = lesson.folder / RECORDED
        self.recorded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def of(self, exercise: Exercise) -> dict[str, Callable[[Any], None]]:
        """Return the tests of an exercise.

        Args:
            exercise: The exercise.

        Returns:
            From a test's name to the test, in the order of the file.

        """
        return {name: test for name, (asked, test) in self.all().items() if asked == exercise.name}

    def all(self) -> dict[str, tuple[str, Callable[[Any], None]]]:
        """Return all tests of the lesson.

        Returns:
            From a test's name to the exercise that it asks for and the test, in the order of the file.

        """
        found = {name: value for name, value in vars(self._module).items() if name.startswith("test_")}
        return {name: (next(iter(inspect.signature(test).parameters), ""), test) for name, test in found.items()}

    def run(
        self, exercise: Exercise, test: str, subject: Subject | Callable[..., Any], hard: bool = False
    ) -> Failure | str | None:
        """Run one test.

        Args:
            exercise: The exercise.
            test: The test's name.
            subject: Whose function; or the function itself.
            hard: Whether a call that cannot be interrupted ends the process.

        Returns:
            Why it failed, or what it has to say when it passes: a text or `None`.

        """
        file = _file_of(subject)
        try:
            with deadline(exercise.deadline * self.patience, file, hard):
                function = subject.function(exercise) if isinstance(subject, Subject) else subject
                return self.of(exercise)[test](function)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return _failure(exercise, test, error, file)

    def check(self, exercise: Exercise, subject: Subject | Callable[..., Any], everything: bool = False):
        """Run the tests of an exercise, and find the mistake's name.

        Args:
            exercise: The exercise.
            subject: Whose function; or the function itself.
            everything: Whether to go on after the first failure.

        Returns:
            The failures: none, one, or with `everything` all.

        """
        failures = []
        for test in self.of(exercise):
            failure = self.run(exercise, test, subject)
            if isinstance(failure, Failure):
                failures.append(failure if failures else self.named(exercise, failure, subject))
                if not everything:
                    break
        return failures

    def named(self, exercise: Exercise, failure: Failure, subject: Subject | Callable[..., Any]) -> Failure:
        """Add the third layer: the name, when exactly one known mistake does the same.

        Args:
            exercise: The exercise.
            failure: What was found.
            subject: Whose function it was.

        Returns:
            The failure, with its mistake or without.

        """
        if failure.kind in ("not started", "cannot be read"):
            return failure
        known = self.mistakes(exercise.name)
        endless = failure.kind == "too long"  # a second run would end no sooner
        mine = _hash(NO_END) if endless or not known else self.fingerprint(exercise.name, subject, exercise)
        same = [mistake for mistake in known if mistake.fingerprint == mine]
        return replace(failure, mistake=same[0]) if len(same) == 1 else failure

    def mistakes(self, name: str) -> list[Mistake]:
        """Return the known mistakes of an exercise, as they were recorded.

        Args:
            name: The exercise's name.

        Returns:
            The mistakes; empty before `make record`.

        """
        return [Mistake(**data) for data in self.recorded.get("mistakes", {}).get(name, [])]

    def fingerprint(self, name: str, subject: Subject | Callable[..., Any], exercise: Exercise) -> str:
        """Hash what a function does: what `probe_NAME` in the tests returns for it.

        Args:
            name: Which probe.
            subject: Whose function; or the function itself.
            exercise: The exercise, for the deadline.

        Returns:
            16 hexadecimal digits.

        """
        probe = getattr(self._module, f"probe_{name}")
        file = _file_of(subject)
        try:
            with deadline(exercise.deadline * self.patience, file):
                value = probe(subject.function(exercise) if isinstance(subject, Subject) else subject)
        except DeadlineExceeded:
            value = NO_END
        except (Exception, SystemExit) as error:
            value = f"raises {type(error).__name__}"
        return _hash(value)


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function for a probe; an error is a result too.

    Args:
        function: The function.
        *arguments: What it is given.

    Returns:
        What it returned, or "raises ValueError".

    """
    try:
        return function(*arguments)
    except DeadlineExceeded:
        raise
    except (Exception, SystemExit) as error:
        return f"raises {type(error).__name__}"


def _hash(value: Any) -> str:
    """Hash plain data."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _file_of(subject: Any) -> Path | str:
    """Return the file that holds the function under test."""
    if isinstance(subject, Subject) and subject.file is not None:
        return subject.file
    code = getattr(inspect.unwrap(subject), "__code__", None) if callable(subject) else None
    return code.co_filename if code else ""


def _failure(exercise: Exercise, test: str, error: BaseException, file: Path | str) -> Failure:
    """Say what an exception means, with the learner's own lines only."""
    lines = tuple(own_lines(error.__traceback__, file))
    if isinstance(error, NotImplementedError) and str(error) == f"{exercise.id}: not started":
        return Failure(exercise.id, test, "not started", str(error), {})
    if isinstance(error, CannotBeRead):
        return Failure(exercise.id, test, "cannot be read", str(error), {})
    if isinstance(error, Wrong):
        return Failure(exercise.id, test, "wrong", error.what, error.details, (), error.symptom, error.table)
    if isinstance(error, DeadlineExceeded):
        return Failure(exercise.id, test, "too long", f"{exercise.name}: {error}", {})
    what = f"{exercise.name} raised {type(error).__name__}: {error}".rstrip(": ")
    return Failure(exercise.id, test, "raised", what, {}, lines)
