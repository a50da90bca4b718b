"""Has every line of Python that a page shows been run? The lesson's `runs.shown()` is traced, line by line.

    page --directives--> lines that it shows  --minus-->  lines that ran  =  lines that nobody tried

Costs: runs what the page shows once more, slowly. Leaves out: lines that AutoGraph rewrote, unless TensorFlow's
functions run eagerly.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfdistedu.course.lesson import Lesson
from tfdistedu.course.pages import DIRECTIVE, fences, section
from tfdistedu.course.subject import load_module


def not_executed(lesson: Lesson, base: Path, eagerly: bool = False) -> list[str]:
    """Say which shown lines of Python the lesson's `runs.shown()` never executes.

    Args:
        lesson: The lesson.
        base: The folder that paths in the page are relative to.
        eagerly: Whether TensorFlow's functions run as Python; in a graph, lines that AutoGraph rewrote are not seen.

    Returns:
        "file:line: text" for each.

    """
    text = (base / lesson.page).read_text(encoding="utf-8")
    wanted: dict[Path, set[int]] = defaultdict(set)
    for language, lines, _ in fences(text):
        for directive in filter(None, map(DIRECTIVE.match, lines)):
            shown = section(base / directive["file"], directive["section"])
            if language == "python" and isinstance(shown, range):
                wanted[base / directive["file"]] |= set(shown)
    runs = load_module(lesson.folder / "runs.py")
    if eagerly:
        from tfdistedu.devices import tf

        tf.config.run_functions_eagerly(True)
    try:
        seen = executed(runs.shown, set(wanted))
    finally:
        if eagerly:
            tf.config.run_functions_eagerly(False)
    missed = []
    for file, numbers in wanted.items():
        source = file.read_text(encoding="utf-8")
        lines = source.splitlines()
        for number in sorted(numbers & _statements(source) - seen[file]):
            missed.append(f"{file.name}:{number}: {lines[number - 1].strip()}")
    return missed


def executed(function: Callable[[], Any], files: set[Path]) -> dict[Path, set[int]]:
    """Run a function and note which lines of some files it executes, in all threads that it starts.

    Args:
        function: The function.
        files: The files.

    Returns:
        From each file to the numbers of its lines.

    """
    seen: dict[Path, set[int]] = {file: set() for file in files}
    by_name = {str(file): seen[file] for file in files}

    def trace(frame: Any, event: str, _: Any) -> Any:
        lines = by_name.get(frame.f_code.co_filename)
        if lines is None:
            return None
        lines.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    threading.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
        threading.settrace(None)
    return seen


def _statements(source: str) -> set[int]:
    """Return the first lines of statements in functions: what a trace reports; docstrings and `def` lines are not."""
    found = set()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            nodes = [node for each in function.body for node in ast.walk(each) if isinstance(node, ast.stmt)]
            texts = [node for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
            found |= {node.lineno for node in nodes if node not in texts}
    return found
