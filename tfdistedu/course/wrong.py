"""How is a wrong answer told? First where it goes wrong, then what it looks like, and only when certain, why.

The idea: three layers, from what is always known to what is rarely known.

    always      the first divergence: what was called, what came, what was expected, and why
    often       a symptom: "right values on wrong links"
    sometimes   the name of a known mistake and the question that leads out of it: only when exactly one fits

Tests raise `Wrong` for the first two; the third is found by the engine, by comparing fingerprints.

Costs: nothing. Leaves out: how to find the first divergence; each test knows that best.
"""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import dataclass
from typing import Any, NamedTuple


class Wrong(AssertionError):
    """A test's answer to a wrong solution.

    Attributes:
        what: Where it first goes wrong, as a sentence.
        details: What was called, what came, what was expected, why: label to text.
        symptom: What the whole looks like, or "".
        table: Lines to show as they are, or "".
    """

    what: str
    details: dict[str, str]
    symptom: str
    table: str

    def __init__(
        self,
        what: str,
        *,
        called: str = "",
        came: str = "",
        expected: str = "",
        why: str = "",
        symptom: str = "",
        table: str = "",
    ) -> None:
        """Keep the parts.

        Args:
            what: Where it first goes wrong, as a sentence.
            called: The call.
            came: What it gave.
            expected: What it should have given.
            why: The reason.
            symptom: What the whole looks like.
            table: Lines to show as they are.

        """
        super().__init__(what)
        given = {"called": called, "came": came, "expected": expected, "why": why}
        self.what, self.symptom, self.table = what, symptom, table
        self.details = {label: text for label, text in given.items() if text}


class Mistake(NamedTuple):
    """A known mistake, as `recorded.json` keeps it.

    Attributes:
        id: Its name.
        believes: What somebody believes who makes it.
        true: What is true.
        question: A question that leads there.
        fingerprint: What it does, hashed.
    """

    id: str
    believes: str
    true: str
    question: str
    fingerprint: str


@dataclass(frozen=True)
class Failure:
    """Why a test of an exercise failed.

    Attributes:
        exercise: The exercise's id.
        test: The test's name.
        kind: "not started", "wrong", "raised", "too long" or "cannot be read".
        what: The first layer's sentence.
        details: Label to text.
        lines: Lines of the learner's own file that lead there.
        symptom: The second layer, or "".
        table: Lines to show as they are, or "".
        mistake: The third layer, or `None`.
    """

    exercise: str
    test: str
    kind: str
    what: str
    details: dict[str, str]
    lines: tuple[str, ...] = ()
    symptom: str = ""
    table: str = ""
    mistake: Mistake | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data.

        Returns:
            What `json.dumps` takes.

        """
        data = {"exercise": self.exercise, "test": self.test, "kind": self.kind, "what": self.what}
        return data | {"symptom": self.symptom, "mistake": self.mistake and self.mistake.id}

    def text(self, width: int | None = None) -> str:
        """Write it for a reader.

        Args:
            width: Columns; `None` takes the terminal's.

        Returns:
            Some lines, none longer than the width where words allow.

        """
        width = width or shutil.get_terminal_size((100, 24)).columns
        if self.kind == "not started":
            return wrapped(self.what, width)
        parts = [wrapped(self.what, width)]
        parts += [wrapped(text, width, f"  {label + ':':<10}") for label, text in self.details.items()]
        parts += [wrapped(line, width, "  at ") for line in self.lines]
        if self.table:
            parts += ["", textwrap.indent(self.table, "  ")]
        if self.symptom:
            parts += ["", wrapped(f"It looks like this: {self.symptom}.", width)]
        if self.mistake:
            parts += ["", wrapped(f"A known mistake does exactly this: {self.mistake.id}.", width)]
            parts += [wrapped(self.mistake.question, width, "  ")]
        return "\n".join(parts)


def wrapped(text: str, width: int, label: str = "") -> str:
    """Wrap a text; later lines stand under the first one's text, or two in where there is no room.

    Args:
        text: The text; its own line ends are kept.
        width: Columns.
        label: What stands before the first line.

    Returns:
        The lines, joined.

    Example:
        >>> print(wrapped("one two three", 12, "  why: "))
          why: one
               two
               three

    """
    inner = " " * (len(label) if width >= 60 or len(label) < 10 else 4)
    lines = []
    for number, line in enumerate(text.splitlines() or [""]):
        first = label if number == 0 else inner
        lines += textwrap.wrap(
            line, width, initial_indent=first, subsequent_indent=inner, break_on_hyphens=False, break_long_words=False
        ) or [first.rstrip()]
    return "\n".join(lines)
