"""Are a learner's tests any good? They must accept what is right and reject what is known to be wrong.

The idea: run them on several right variants and on every known wrong one, and show who survived.

    wrong all_reduce            yours   only ones   two ranks
    drops_the_remainder           X         .           .         X: caught
    goes_the_wrong_way            .         X           .         .: passed your tests, and should not

Costs: one call of the learner's function for each variant. Mistakes run on a learner's machine only here.

Leaves out: why a test caught it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfdistedu.course.deadline import deadline, own_lines
from tfdistedu.course.lesson import load_lesson
from tfdistedu.course.mistakes import load_mistakes
from tfdistedu.course.subject import resolve
from tfdistedu.course.wrong import Wrong, wrapped
from tfdistedu.errors import DeadlineExceeded

_SECONDS_EACH = 5.0


@dataclass
class Grade:
    """What a learner's tests did.

    Attributes:
        refused: Right variants that were rejected: name to the error's text.
        caught: Wrong ones that were rejected: mistake's id to the error's text.
        survived: The ids of wrong ones that passed.
    """

    refused: dict[str, str] = field(default_factory=dict)
    caught: dict[str, str] = field(default_factory=dict)
    survived: list[str] = field(default_factory=list)

    def matrix(self, others: dict[str, list[str]], width: int) -> str:
        """Write who caught what.

        Args:
            others: Other tests' names, and the ids that survived them.
            width: Columns.

        Returns:
            One line for each wrong variant; X: caught, a dot: survived.

        """
        rows = sorted([*self.caught, *self.survived])
        longest = max(map(len, rows), default=0)
        names = {"yours": self.survived} | others
        while len(names) > 1 and longest + sum(len(name) + 2 for name in names) > width:
            names.popitem()
        lines = [" " * longest + "".join(f"  {name}" for name in names)]
        for row in rows:
            lines.append(row.ljust(longest) + "".join(f"  {'.X'[row not in s]:^{len(n)}}" for n, s in names.items()))
        return "\n".join(line.rstrip() for line in lines)


def grade(folder: Path | str, name: str, check: Callable[[Any], None]) -> Grade:
    """Grade a learner's tests.

    Args:
        folder: The lesson's folder.
        name: The exercise's name.
        check: The learner's function: it raises for what is wrong and returns for what is right.

    Returns:
        The grade. When a right variant is rejected nothing else is run.

    Raises:
        DeadlineExceeded: It does not end on a right variant.
        NotImplementedError: It is not started.

    """
    lesson = load_lesson(Path(folder))
    exercise, result = lesson.exercise(name), Grade()
    for where in exercise.right:
        variant = resolve(lesson, where)
        try:
            with deadline(_SECONDS_EACH, check.__code__.co_filename):
                check(variant)
        except (NotImplementedError, DeadlineExceeded):
            raise
        except Exception as error:
            result.refused[variant.__name__] = _said_where(error, check.__code__.co_filename)
    for mistake in [] if result.refused else load_mistakes(lesson):
        if mistake.exercise == exercise.grades:
            try:
                with deadline(_SECONDS_EACH):
                    check(mistake.function)
            except Exception as error:
                result.caught[mistake.id] = said(error)
            else:
                result.survived.append(mistake.id)
    return result


def check_accepts(folder: Path | str, check: Callable[[Any], None]) -> None:
    """Fail when a right variant is rejected.

    Args:
        folder: The lesson's folder.
        check: The learner's function, named as the exercise.

    Raises:
        Wrong: The message names the variant, and what the learner's tests said.

    """
    refused = grade(folder, check.__name__, check).refused
    for name, text in refused.items():
        raise Wrong(
            f"{check.__name__} rejects {name}, which is right.",
            called=f"{check.__name__}({name})",
            came=text,
            expected="it returns, and raises nothing",
            why="a test that asks for more than the task does will reject good work",
        )


def check_rejects(folder: Path | str, check: Callable[[Any], None]) -> str:
    """Fail when a wrong one survives, and show who did.

    Args:
        folder: The lesson's folder.
        check: The learner's function, named as the exercise.

    Returns:
        The kill matrix.

    Raises:
        Wrong: Some survive; the message names the first, and shows the matrix.

    """
    result = grade(folder, check.__name__, check)
    width = shutil.get_terminal_size((100, 24)).columns - 2
    others = _others(Path(folder), check.__name__)
    matrix = result.matrix(others, width)
    legend = wrapped(
        "X: caught, a dot: let through." + (" Beside yours: weak tests that many write." * bool(others)), width
    )
    if result.survived:
        first = next(m for m in load_mistakes(load_lesson(Path(folder))) if m.id == result.survived[0])
        raise Wrong(
            f"{check.__name__} lets {len(result.survived)} of {len(result.caught) + len(result.survived)} wrong ones "
            f"through; the first is {first.id}.",
            called=f"{check.__name__}({first.id})",
            came="nothing was raised",
            expected="an AssertionError",
            why=first.question,
            table=f"{legend}\n\n{matrix}",
        )
    return f"All wrong ones are caught.\n{legend}\n\n{matrix}"


def probe_grade(folder: Path | str, check: Callable[[Any], None]) -> dict[str, list[str]]:
    """Return what a learner's tests do, for a fingerprint.

    Args:
        folder: The lesson's folder.
        check: The function, named as the exercise.

    Returns:
        Which right variants it refuses, and which wrong ones survive.

    """
    result = grade(folder, check.__name__, check)
    return {"refused": sorted(result.refused), "survived": sorted(result.survived)}


def _others(folder: Path, name: str) -> dict[str, list[str]]:
    """Return the recorded grades of popular weak tests."""
    file = folder / "recorded.json"
    recorded = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return recorded.get("survived", {}).get(name, {})


def said(error: Exception) -> str:
    """Write an error in one line.

    Args:
        error: The error.

    Returns:
        Its text, or its type where it has none.

    """
    first = (str(error).splitlines() or [""])[0]
    return first if isinstance(error, AssertionError) and first else f"{type(error).__name__}: {first}".rstrip(": ")


def _said_where(error: Exception, file: str) -> str:
    """Write an error in one line, and under it the line of a file that raised it."""
    return "\n".join([said(error), *(f"at {line}" for line in own_lines(error.__traceback__, file)[-1:])])
