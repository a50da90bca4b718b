"""How far has somebody come? One small file beside the lessons, keyed by names that do not change.

The idea: a pass is bound to the hashes of what passed and of what tested it. When one of them has changed since, the
pass is *stale*: it still counts, and the list says mildly that a run would renew it. Nothing is ever locked. What
passed is `exercise.py` without the lesson's other exercises: who goes on to the next one has not touched the last.

    lessons/.progress.json     {"passed": {"allreduce.ring_all_gather": {"exercise": "3f...", "tests": "a0..."}}}

Costs: one read and one atomic write. Leaves out: time, points, and where one has to go next.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tfdistedu.course.lesson import Exercise, Lesson


class Progress:
    """The progress in one course.

    Attributes:
        file: Where it stands: `.progress.json` in the folder of the lessons.
    """

    file: Path

    def __init__(self, root: Path) -> None:
        """Use the file of a course.

        Args:
            root: The folder that holds the lessons.

        """
        self.file = root / ".progress.json"

    def read(self) -> dict[str, Any]:
        """Return what is written down.

        Returns:
            From "passed" and "hints" to exercises' ids; empty tables if the file is not there or is damaged.

        """
        try:
            data = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            data = {}
        data = data if isinstance(data, dict) else {}
        return {key: data[key] if isinstance(data.get(key), dict) else {} for key in ("passed", "hints")}

    def passed(self, lesson: Lesson, exercise: Exercise) -> None:
        """Write down that an exercise's tests all pass.

        Args:
            lesson: The lesson.
            exercise: The exercise.

        """
        data = self.read()
        data["passed"][exercise.id] = _hashes(lesson, exercise)
        self._write(data)

    def hinted(self, exercise: Exercise, rung: int) -> None:
        """Write down how many hints were shown.

        Args:
            exercise: The exercise.
            rung: How many.

        """
        data = self.read()
        data["hints"][exercise.id] = rung
        self._write(data)

    def forget(self, lesson: Lesson) -> None:
        """Forget what was written down about a lesson.

        Args:
            lesson: The lesson.

        """
        data = self.read()
        for exercise in lesson.exercises:
            data["passed"].pop(exercise.id, None)
            data["hints"].pop(exercise.id, None)
        self._write(data)

    def hints(self, exercise: Exercise) -> int:
        """Return how many hints were shown.

        Args:
            exercise: The exercise.

        Returns:
            0 to 3.

        """
        return self.read()["hints"].get(exercise.id, 0)

    def state(self, lesson: Lesson, exercise: Exercise) -> str:
        """Say how an exercise stands.

        Args:
            lesson: The lesson.
            exercise: The exercise.

        Returns:
            "passed", "stale" (passed, and something changed since), "started" or "new".

        """
        then = self.read()["passed"].get(exercise.id)
        if then is not None:
            return "passed" if then == _hashes(lesson, exercise) else "stale"
        return "started" if (lesson.folder / "exercise.py").is_file() else "new"

    def _write(self, data: dict[str, Any]) -> None:
        """Replace the file in one go, so that no reader ever sees half of it."""
        text = json.dumps(data, indent=1, sort_keys=True) + "\n"
        with tempfile.NamedTemporaryFile("w", dir=self.file.parent, prefix=".progress", delete=False) as new:
            new.write(text)
        os.replace(new.name, self.file)


def percent(states: list[str]) -> int:
    """Return how much of a course is done.

    Args:
        states: One state an exercise.

    Returns:
        0 to 100; a stale pass counts.

    Example:
        >>> percent(["passed", "stale", "new"])
        66

    """
    done = sum(state in ("passed", "stale") for state in states)
    return 100 * done // len(states) if states else 0


def _hashes(lesson: Lesson, exercise: Exercise) -> dict[str, str]:
    """Hash an exercise's part of the learner's file, and the tests."""
    mine, tests = (_text(lesson.folder / name) for name in ("exercise.py", "test_exercise.py"))
    others = {each.name for each in lesson.exercises} - {exercise.name}
    parts = {"exercise": _without(mine, others), "tests": tests}
    return {what: hashlib.sha256(text.encode()).hexdigest()[:16] for what, text in parts.items()}


def _text(file: Path) -> str:
    """Read a file; "" if it is not there."""
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _without(text: str, names: set[str]) -> str:
    """Leave out functions of a file; one that is no Python stays whole."""
    try:
        nodes = ast.parse(text).body
    except (SyntaxError, ValueError):
        return text
    lines = text.splitlines()
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            lines[first - 1 : node.end_lineno] = [""] * (node.end_lineno - first + 1)
    return "\n".join(line for line in lines if line.strip())
