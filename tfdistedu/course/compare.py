"""How did we write it? A diff of the learner's function and the reference.

The idea: both are shown without decorators, docstrings and the page's markers, for those are the same or not the point.

    --- yours
    +++ ours (tfdistedu/collectives/algorithms/rings.py)

Costs: parses two files. Leaves out: a judgement; other right answers are as good.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from pathlib import Path

from tfdistedu.course.lesson import Exercise, Lesson
from tfdistedu.course.pages import CUT
from tfdistedu.course.subject import resolve


def compare(lesson: Lesson, exercise: Exercise) -> str:
    """Return the diff of a learner's function and the reference.

    Args:
        lesson: The lesson.
        exercise: The exercise.

    Returns:
        A unified diff with much context; "" when they are the same.

    """
    ours = inspect.unwrap(resolve(lesson, exercise.reference))
    file = Path(ours.__code__.co_filename)
    text = file.read_text(encoding="utf-8")
    mine = lesson.folder / "exercise.py"
    left = _body(mine.read_text(encoding="utf-8"), exercise.name) if mine.is_file() else []
    right = [line for line in _body(text, ours.__name__) if CUT not in line]
    return "\n".join(difflib.unified_diff(left, right, "yours", f"ours, in {file.name}", n=99, lineterm=""))


def _body(text: str, name: str) -> list[str]:
    """Return the lines of a function without decorators and docstring."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            head = lines[node.lineno - 1 : node.body[0].lineno - 1]
            between = lines[node.body[0].end_lineno : first.lineno - 1] if first is not node.body[0] else []
            return head + between + lines[first.lineno - 1 : node.end_lineno]
    return []
