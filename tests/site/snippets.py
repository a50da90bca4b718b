"""Read the sources of the pages: their fenced blocks, and the directives that include a section of a file.

The extension itself lets three mistakes pass: a missing end marker includes the rest of the file, an unquoted directive
is printed as it stands, and so is one with a word mistyped. So the sources are read here once more, strictly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w+-]*)(?P<rest>.*)$")
_DIRECTIVE = re.compile(r'^\s*--8<-- "(?P<file>[^":]+)(?::(?P<section>[\w-]+))?"$')
LOOKS_LIKE_A_DIRECTIVE = re.compile(r"-+8<-+|-8<|8<--")


@dataclass
class Block:
    """A fenced block: its `language`, the line it starts on, and its `lines`."""

    language: str
    line: int
    lines: list[str]


def fenced_blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page's source."""
    blocks, inside, fence = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if inside is None and (start := _FENCE.match(line)):
            inside, fence = Block(start["language"], number, []), start["fence"]
        elif inside is not None and line.strip() == fence:
            blocks.append(inside)
            inside = None
        elif inside is not None:
            inside.lines.append(line)
    if inside is not None:
        raise AssertionError(f"line {inside.line}: a fenced block without an end")
    return blocks


def mistake_in_directive(line: str, root: Path) -> str | None:
    """Say what is wrong with a line that includes something, or `None`.

    Args:
        line: A line of a page's source that looks like a directive.
        root: The folder that paths are relative to.

    """
    directive = _DIRECTIVE.match(line)
    if directive is None:
        return f'not of the form `--8<-- "file"` or `--8<-- "file:section"`: {line.strip()}'
    path = root / directive["file"]
    if not path.is_file():
        return f"no file {directive['file']}"
    if directive["section"] is None:
        return None
    markers = [
        (kind, number)
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for kind, name in re.findall(r"--8<-- \[(start|end):([\w-]+)\]", text)
        if name == directive["section"]
    ]
    if [kind for kind, _ in markers] != ["start", "end"]:
        return f"{directive['file']} must hold one start and then one end of {directive['section']!r}, not {markers}"
    return None


def included(line: str) -> tuple[str, str | None] | None:
    """Return the file and section that a line includes, or `None` if it is no directive."""
    directive = _DIRECTIVE.match(line)
    return (directive["file"], directive["section"]) if directive else None
