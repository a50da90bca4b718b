"""How do stubs, fingerprints, pictures and numbers stay true? One command makes them all, and tests make them again.

The idea: a recorded file is never edited. `make record` writes it; a drift check makes it once more, in memory, and
compares. Each drift names this command.

    references  ---->  lessons/NN_slug/stub.py
    mistakes    ---->  lessons/NN_slug/recorded.json      fingerprints; what weak tests let through
    runs.py     ---->  docs/recorded/slug/*               OUTPUTS: texts and pictures; VALUES: numbers, with versions
    VALUES      ---->  docs/lessons/*.md                  the text inside of <data value="slug.name">...</data>
    the page    ---->  lessons/NN_slug/page.md            the same to read without the site

`runs.py` of a lesson has OUTPUTS (file name to function), VALUES (name to function: the same on every machine, compared
as text) and TIMED (the same, but measured: kept as recorded until somebody records anew with `--timed`).

Costs: what the runs cost. Leaves out: whether a page reads well; see `tfdistedu.course.pages`.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tfdistedu.course.grade import grade
from tfdistedu.course.lesson import Lesson, all_lessons
from tfdistedu.course.mistakes import load_mistakes
from tfdistedu.course.pages import COMMAND, DATA, readable
from tfdistedu.course.runner import PATIENT, RECORDED, LessonTests
from tfdistedu.course.stubs import make_stub
from tfdistedu.course.subject import load_module

_WITHOUT_TENSORFLOW = ("allreduce", "cluster")


class Drift(NamedTuple):
    """A recorded file that is not what the command makes.

    Attributes:
        file: The file.
        text: What is to be in it.
        why: Why it matters, and what to do.
    """

    file: Path
    text: str
    why: str


def made(lesson: Lesson, docs: Path, timed: bool = False) -> Iterator[tuple[Path, str]]:
    """Make all recorded files of a lesson, in memory.

    Args:
        lesson: The lesson.
        docs: The folder of the site's pages.
        timed: Whether to measure anew what depends on the machine.

    Yields:
        Each file and the text that belongs in it.

    """
    stub = lesson.folder / "stub.py"
    yield stub, make_stub(lesson)
    yield lesson.folder / RECORDED, _json(_recorded(lesson))
    folder = docs / "recorded" / lesson.slug
    values: dict[str, str] = {}
    if (lesson.folder / "runs.py").is_file():
        runs = load_module(lesson.folder / "runs.py")
        for name, function in runs.OUTPUTS.items():
            yield folder / name, function()
        old = _read(folder / "values.json")
        measured = {name: function() for name, function in runs.TIMED.items()} if timed else old.get("timed", {})
        fixed = {name: function() for name, function in runs.VALUES.items()}
        head = {"made_by": COMMAND} | (_machine(lesson) if timed else {k: old.get(k) for k in ("machine", "versions")})
        yield folder / "values.json", _json(head | {"values": fixed, "timed": measured})
        values = {f"{lesson.slug}.{name}": value for name, value in (fixed | measured).items()}
    page = docs.parent / lesson.page
    if lesson.page and page.is_file():
        text = page.read_text(encoding="utf-8")
        yield page, DATA.sub(lambda m: f'<data value="{m[1]}">{values.get(m[1], m[2])}</data>', text)
        # `record` has written what came before by now, so this reads the new page and the new outputs.
        yield lesson.folder / "page.md", readable(lesson, docs.parent)


def drifts(lesson: Lesson, docs: Path) -> list[Drift]:
    """Return the recorded files of a lesson that are not what the command makes.

    Args:
        lesson: The lesson.
        docs: The folder of the site's pages.

    Returns:
        The drifts; none when all is as recorded.

    """
    found = []
    for file, text in made(lesson, docs):
        before = file.read_text(encoding="utf-8") if file.is_file() else None
        if before != text:
            what = "is missing" if before is None else f"is not what the lesson makes today{_first(before, text)}"
            found.append(Drift(file, text, f"{file.name} of {lesson.slug} {what}. Run: {COMMAND}"))
    return found


def record(root: Path, docs: Path, timed: bool = False) -> list[Path]:
    """Write all recorded files.

    Args:
        root: The folder of the lessons.
        docs: The folder of the site's pages.
        timed: Whether to measure anew what depends on the machine.

    Returns:
        The files that changed.

    """
    changed = []
    for lesson in all_lessons(root):
        for file, text in made(lesson, docs, timed):
            if not file.is_file() or file.read_text(encoding="utf-8") != text:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
                changed.append(file)
    return changed


def _recorded(lesson: Lesson) -> dict[str, Any]:
    """Make what a learner's machine may know of the mistakes."""
    tests, mistakes = LessonTests(lesson, PATIENT), load_mistakes(lesson)
    known: dict[str, list[dict[str, str]]] = {}
    survived: dict[str, dict[str, list[str]]] = {}
    for exercise in lesson.exercises:
        for mistake in [each for each in mistakes if each.exercise == exercise.name]:
            entry = {word: getattr(mistake, word) for word in ("id", "believes", "true", "question")}
            entry["fingerprint"] = tests.fingerprint(exercise.name, mistake.function, exercise)
            known.setdefault(exercise.name, []).append(entry)
            if exercise.kind == "tests":
                result = grade(lesson.folder, exercise.name, mistake.function)
                if not result.refused:
                    survived.setdefault(exercise.name, {})[mistake.id] = sorted(result.survived)
    return {"made_by": COMMAND, "mistakes": known, "survived": survived}


def _machine(lesson: Lesson) -> dict[str, Any]:
    """Say on what it was recorded, as far as a reader needs it."""
    import os

    packages = ["numpy"] if lesson.slug in _WITHOUT_TENSORFLOW else ["numpy", "tensorflow", "keras"]
    versions = {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in packages}
    return {"machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}", "versions": versions}


def _read(file: Path) -> dict[str, Any]:
    """Read JSON; an empty table if there is none."""
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _json(data: Any) -> str:
    """Write JSON as it is kept."""
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def _first(before: str, after: str) -> str:
    """Name the first line that differs."""
    pairs = zip([*before.splitlines(), ""], [*after.splitlines(), ""], strict=False)
    number, line = next(((n, new) for n, (old, new) in enumerate(pairs, 1) if old != new), (0, ""))
    return f" (line {number} would be {line.strip()[:80]!r})"


def main(arguments: list[str]) -> int:
    """Record, and say what changed.

    Args:
        arguments: `--timed`, and a folder that holds `lessons` and `docs` if it is not this one.

    Returns:
        The exit status.

    """
    timed = "--timed" in arguments
    base = Path(next((word for word in arguments if not word.startswith("-")), ".")).resolve()
    changed = record(base / "lessons", base / "docs", timed)
    for file in changed:
        print(f"wrote {file.relative_to(base)}")
    print(f"{len(changed)} files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
