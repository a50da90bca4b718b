"""Which file is tested? The learner's, unless somebody says otherwise; and every run says which.

The idea: a test never imports what it tests. It is given a function, and who gives it decides whose function it is.

    exercise (the default)   lessons/NN_slug/exercise.py      made from the stub at the first run, never overwritten
    stub                     lessons/NN_slug/stub.py
    reference                where lesson.toml says
    a path                   that file: a mistake, say

The author's gate names its subjects, so that no `exercise.py` is ever read by it, whatever stands there.

Costs: compiles one file; nothing is cached, so a file that changed within a second is read anew.

Leaves out: time limits; see `tfdistedu.course.deadline`.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfdistedu.course.lesson import Exercise, Lesson
from tfdistedu.errors import BadInput, TfdisteduError


class CannotBeRead(TfdisteduError):
    """A file could not be run to its end, or lacks a function."""


@dataclass
class Subject:
    """Whose functions are tested.

    Attributes:
        lesson: The lesson.
        file: The file, or `None` for the references.
    """

    lesson: Lesson
    file: Path | None
    _module: types.ModuleType | None = field(default=None, repr=False)
    _references: dict[str, Callable[..., Any]] = field(default_factory=dict, repr=False)

    @property
    def is_exercise(self) -> bool:
        """Whether it is the learner's own file."""
        return self.file == self.lesson.folder / "exercise.py"

    def function(self, exercise: Exercise) -> Callable[..., Any]:
        """Return the function that solves an exercise.

        Args:
            exercise: The exercise.

        Returns:
            The function.

        Raises:
            CannotBeRead: The file has no such function, or cannot be run.

        """
        if self.file is None:
            if exercise.name not in self._references:
                self._references[exercise.name] = resolve(self.lesson, exercise.reference)
            return self._references[exercise.name]
        if self._module is None:
            self._module = load_module(self.file)
        return _function_in(self._module, exercise.name, self.file)


def choose_subject(lesson: Lesson, which: str = "exercise") -> Subject:
    """Return the subject that somebody names.

    Args:
        lesson: The lesson.
        which: "exercise", "stub", "reference", or a file's path.

    Returns:
        The subject; `exercise.py` is made if it is the subject and does not exist.

    Raises:
        BadInput: There is no such file.

    """
    if which == "reference":
        return Subject(lesson, None)
    if which == "stub":
        return Subject(lesson, lesson.folder / "stub.py")
    if which == "exercise":
        return Subject(lesson, start_exercise(lesson))
    file = Path(which).resolve()
    if not file.is_file():
        raise BadInput(f"--subject {which}: there is no such file; give a path, or exercise, stub or reference.")
    return Subject(lesson, file)


def start_exercise(lesson: Lesson) -> Path:
    """Make `exercise.py` from the stub if there is none.

    Args:
        lesson: The lesson.

    Returns:
        Its path.

    """
    file = lesson.folder / "exercise.py"
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write((lesson.folder / "stub.py").read_text(encoding="utf-8"))
    except FileExistsError:
        pass
    return file


def load_module(file: Path) -> types.ModuleType:
    """Run a file as a module of its own, and return it; a second call runs it again.

    Args:
        file: A Python file.

    Returns:
        The module.

    Raises:
        CannotBeRead: It raised something, or is no Python.

    """
    module = types.ModuleType(f"_lesson_{file.parent.name}_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    try:
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), module.__dict__)
    except SyntaxError as error:
        raise CannotBeRead(f"{file.name}:{error.lineno}: this is no Python: {error.msg}.") from None
    except (Exception, SystemExit) as error:
        from tfdistedu.course.deadline import own_lines

        at = (own_lines(error.__traceback__, file) or [file.name])[-1]
        raise CannotBeRead(f"{at}: {type(error).__name__}: {error}".rstrip(": ") + ".") from error
    return module


def resolve(lesson: Lesson, where: str) -> Callable[..., Any]:
    """Return the function that `lesson.toml` names.

    Args:
        lesson: The lesson.
        where: "package.module:function", or "file.py:function" in the lesson's folder.

    Returns:
        The function.

    Raises:
        BadInput: There is no such file or function.

    """
    place, _, name = where.partition(":")
    if place.endswith(".py"):
        file = lesson.folder / place
        if not file.is_file():
            raise BadInput(f"{lesson.folder / 'lesson.toml'}: there is no {place} in the lesson's folder.")
        return _function_in(load_module(file), name, file)
    return _function_in(importlib.import_module(place), name, Path(place))


def _function_in(module: types.ModuleType, name: str, file: Path) -> Callable[..., Any]:
    """Return a module's function, or say that it has none."""
    function = getattr(module, name, None)
    if not callable(function):
        raise CannotBeRead(f"{file.name} has no function {name}; stub.py shows how it begins.")
    return function
