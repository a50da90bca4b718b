"""Read a built page: its elements, its text, its anchors. Python's own parser, so that no browser is needed."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Element:
    """One start tag: its `name`, its `attributes`, and the `text` up to its end tag (with that of inner elements).

    `words` is the text without what stands in `code` and `pre`.
    """

    name: str
    attributes: dict[str, str]
    text: str = ""
    words: str = ""


@dataclass
class Page:
    """What stands on a page: `elements` in order, `raw` text of the file."""

    raw: str
    elements: list[Element] = field(default_factory=list)

    def all(self, *names: str) -> list[Element]:
        """Return the elements with one of these names."""
        return [element for element in self.elements if element.name in names]

    @functools.cached_property
    def anchors(self) -> set[str]:
        """Return everything that `#...` can point to."""
        return {e.attributes[key] for e in self.elements for key in ("id", "name") if e.attributes.get(key)}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        names = [element.name for element in self._open]
        if tag in names:
            del self._open[len(names) - 1 - names[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        is_code = any(element.name in ("code", "pre") for element in self._open)
        for element in self._open:
            if element.name not in ("html", "body"):  # nobody asks for the text of a whole page
                element.text += data
                element.words += "" if is_code else data


def read_page(path: Path) -> Page:
    """Read a page from a file."""
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> Page:
    """Read a page from its text."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return Page(text, reader.elements)
