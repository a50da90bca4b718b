"""Does a lesson's page say only what is so? Code, numbers and lengths, checked in its source.

The idea: a page holds words. Code comes from marked sections of tested files, outputs from recorded runs, and a number
with a unit stands in an element that names its record:

    <data value="allreduce.ring_4">12.0 MB</data>         compared with docs/recorded/allreduce/values.json
    ```python
    lessons/07_allreduce/naive.py:naive                    the section has both its markers, and each line has run
    ```

Costs: reads the page. Leaves out: style; whether what is shown has run (`tfdistedu.course.shown`).
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tfdistedu.course.lesson import Lesson, all_lessons

MOST_WORDS, MOST_EXCERPTS, MOST_LINES = 1200, 3, 25

# Written so that this file, shown on a page, holds no marker itself.
DIRECTIVE = re.compile(r'^\s*-{2}8<[-]{2} "(?P<file>[^":]+)(?::(?P<section>[\w-]+))?"\s*$')
"""What includes a section in a page."""
_LOOKS_LIKE_ONE = re.compile(r"8<[-]")
CUT = "--8<" + "--"
"""What marks a section in a file."""
_UNIT = re.compile(
    r"(?<![\w.])\d[\d.,]*\s?(?:[kKMGT]i?B/s|[kKMGT]i?B|B/s|bytes?|ms|us|ns|s|seconds?|minutes?|hours?|%|times|x)\b(?!\w)"
    r"|\d[\d.,]*\s?%"
)
COMMAND = "make record"
"""What makes every recorded file."""

DATA = re.compile(r'<data value="([^"]+)">([^<]*)</data>')
"""A recorded number in a page."""

_PARTS = ("## The naive version", "## A sibling", "## The recorded run", "## Your turn", "## Looks right, is wrong")
_LAST = ("## What it costs", "## Take away", "## On Monday", "## Next")


def problems(lesson: Lesson, base: Path) -> list[str]:
    """Say what is wrong with a lesson's page.

    Args:
        lesson: The lesson.
        base: The folder that paths in the page are relative to.

    Returns:
        One sentence for each problem.

    """
    page = base / lesson.page
    if not lesson.page or not page.is_file():
        return [f"{lesson.slug} has no page {lesson.page!r}"]
    text = page.read_text(encoding="utf-8")
    found = [*_fences(text, base), *_numbers(text, lesson, base), *_shape(text, lesson)]
    return [f"{page.name}: {problem}" for problem in found]


def _fences(text: str, base: Path) -> Iterator[str]:
    """Look at what is included, and at what should be."""
    excerpts = 0
    for language, lines, number in fences(text):
        directives = [DIRECTIVE.match(line) for line in lines]
        if language == "python" or any(directives):
            if not all(directives):
                yield f"line {number}: a fence holds included sections and nothing else"
            excerpts += language == "python"
        elif language not in ("shell", ""):
            yield f"line {number}: {language} is typed by hand; include it from a file"
        for directive in filter(None, directives):
            shown = section(base / directive["file"], directive["section"])
            if isinstance(shown, str):
                yield f"line {number}: {shown}"
            elif language == "python" and len(shown) > MOST_LINES:
                yield f"line {number}: {len(shown)} lines; an excerpt has at most {MOST_LINES}"
    if excerpts > MOST_EXCERPTS:
        yield f"{excerpts} excerpts of code; a page has at most {MOST_EXCERPTS}"
    for number, line in enumerate(text.splitlines(), 1):
        if _LOOKS_LIKE_ONE.search(line) and not DIRECTIVE.match(line):
            yield f'line {number}: not of the form {CUT} "file:section": {line.strip()}'


def _numbers(text: str, lesson: Lesson, base: Path) -> Iterator[str]:
    """Look at numbers: recorded ones are as recorded, and none stands bare."""
    file = base / "docs" / "recorded" / lesson.slug / "values.json"
    record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"values": {}, "timed": {}}
    known = {f"{lesson.slug}.{name}": value for name, value in (record["values"] | record["timed"]).items()}
    for key, shown in DATA.findall(text):
        if key not in known:
            yield f"{key!r} is not recorded; put it into runs.py and run: {COMMAND}"
        elif known[key] != shown:
            yield f"{key} is {known[key]!r} and the page says {shown!r}. Run: {COMMAND}"
    bare = DATA.sub("", without_fences(text))
    for match in _UNIT.finditer(bare):
        yield f"a bare number with a unit: {match.group()!r}; write <data value=...>, so that it is compared"


def _shape(text: str, lesson: Lesson) -> Iterator[str]:
    """Look at the parts, their order and the length."""
    places = [text.find(part) for part in (*_PARTS, *_LAST)]
    missing = [part for part, place in zip((*_PARTS, *_LAST), places, strict=True) if place < 0]
    if missing:
        yield f"there is no part {missing[0]!r}"
    elif places != sorted(places):
        yield f"its parts are to stand in this order: {', '.join((*_PARTS, *_LAST))}"
    words = len(re.findall(r"[^\W_]+", without_fences(text)))
    if words > MOST_WORDS:
        yield f"{words} words; a page has at most {MOST_WORDS}"
    for exercise in lesson.exercises:
        if f"`{exercise.name}`" not in text:
            yield f"it never names the exercise `{exercise.name}`"


def readable(lesson: Lesson, base: Path) -> str:
    """Return a page as plain text to read beside the exercise, for those who do not build the site.

    Args:
        lesson: The lesson.
        base: The folder that paths in the page are relative to.

    Returns:
        Markdown: includes are put in; hints and our answers are left out, for `learn hint` and `learn show` have them.
        A link to another lesson leads to its folder; one to another page of the site, which is not here, says so.

    """
    text = (base / lesson.page).read_text(encoding="utf-8")
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    text = re.sub(r"^\?\?\? .*\n(?:\n|    .*\n)*", "", text, flags=re.M)
    text = re.sub(r'<figure[^>]*data-command="([^"]+)".*?</figure>', r"The picture: run `\1`.", text, flags=re.S)
    text = DATA.sub(lambda match: match[2], text)
    text = re.sub(
        r'^!!! \w+ "(.*)"\n((?:\n|    .*\n)*)', lambda m: f"**{m[1]}**\n{textwrap.dedent(m[2])}", text, flags=re.M
    )

    folders = {
        (base / each.page).resolve(): each.folder.name for each in all_lessons(lesson.folder.parent) if each.page
    }

    def link(match: re.Match) -> str:
        folder = folders.get((base / lesson.page).parent.joinpath(match[2]).resolve())
        return f"[{match[1]}](../{folder}/page.md)" if folder else f"{match[1]} (on the site)"

    text = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)#\s]+)[^)]*\)", link, text)

    def put_in(match: re.Match) -> str:
        shown = section(base / match["file"], match["section"])
        lines = (base / match["file"]).read_text(encoding="utf-8").splitlines()
        return textwrap.dedent("\n".join(lines[number - 1] for number in shown)).strip()

    body = re.sub(DIRECTIVE.pattern, put_in, text, flags=re.M)
    return f"<!-- Made by `{COMMAND}` from {lesson.page}; the site has the same with pictures. -->\n{body}"


def fences(text: str) -> Iterator[tuple[str, list[str], int]]:
    """Give the fenced blocks of a page.

    Args:
        text: The page's source.

    Yields:
        Language, lines, and the number of the first line.

    """
    inside: list[str] | None = None
    language, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith("```"):
            if inside is None:
                inside, language, first = [], line.strip().strip("`"), number
            else:
                yield language, inside, first
                inside = None
        elif inside is not None:
            inside.append(line)


def without_fences(text: str) -> str:
    """Return the words of a page.

    Args:
        text: The page's source.

    Returns:
        It without fenced blocks and without its head.

    """
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    return re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.S | re.M)


def section(file: Path, name: str | None) -> range | str:
    """Return the lines of a marked section.

    Args:
        file: The file.
        name: The section's name; `None` is the whole file.

    Returns:
        The numbers of its lines, or what is wrong.

    """
    if not file.is_file():
        return f"there is no file {file}"
    lines = file.read_text(encoding="utf-8").splitlines()
    if name is None:
        return range(1, len(lines) + 1)
    marks = [
        (kind, number)
        for number, line in enumerate(lines, 1)
        for kind, found in re.findall(r"-{2}8<[-]{2} \[(start|end):\s*([\w-]+)\]", line)
        if found == name
    ]
    if [kind for kind, _ in marks] != ["start", "end"]:
        return f"{file.name}: section {name!r} needs one start and then one end marker, and has {marks}"
    return range(marks[0][1] + 1, marks[1][1])
