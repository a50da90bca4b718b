"""Each page is whole: a title, one heading, a description, links that lead somewhere, and nothing of this machine."""

from __future__ import annotations

import ast
import getpass
import re
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from tests.fresh_process import ROOT
from tests.site.html import parse

# Not in the reference, and why: scripts that are copied and not imported; the command line, which has its own --help;
# tables of measurements, which are a command too.
NOT_IN_THE_REFERENCE = ("tfdistedu.__main__", "tfdistedu.cli", "tfdistedu.bench", "tfdistedu.recipes")


def test_each_page_has_a_title_one_heading_and_a_description_of_its_own(pages):
    titles, descriptions = {}, {}
    for name, page in pages.items():
        if name == "404.html":
            continue
        title = page.all("title")[0].text.strip()  # pictures have titles too, and come later
        headings = [e.text.strip() for e in page.all("h1")]
        assert len(headings) == 1, (name, headings)
        assert headings[0], name
        described = [e.attributes["content"] for e in page.all("meta") if e.attributes.get("name") == "description"]
        assert len(described) == 1, name
        assert len(described[0]) > 20, (name, described)
        titles.setdefault(title, []).append(name)
        descriptions.setdefault(described[0], []).append(name)
        assert page.all("html")[0].attributes["lang"] == "en", name
    # A page without a description would show the site's, and one whose front matter is broken shows it as text.
    assert [names for names in [*titles.values(), *descriptions.values()] if len(names) > 1] == []


def test_every_picture_says_what_it_shows(pages):
    for name, page in pages.items():
        for element in page.all("img"):
            assert "alt" in element.attributes, (name, element.attributes)
        for element in page.all("svg"):
            if element.attributes.get("role") == "img":
                assert element.attributes.get("aria-label") or element.attributes.get("aria-labelledby"), name


def broken_links(name: str, page, pages) -> list[str]:
    broken = []
    for element in page.all("a"):
        link = urlsplit(element.attributes.get("href", ""))
        if link.scheme or link.netloc or not (link.path or link.fragment):
            continue
        target = name
        if link.path:
            parts: list[str] = []
            for part in (PurePosixPath(name).parent / unquote(link.path)).parts:
                parts = parts[:-1] if part == ".." else [*parts, part]
            target = "/".join(parts) or "index.html"
        if name == "404.html":
            target = unquote(link.path).lstrip("/").removeprefix("./") or "index.html"
        target = "index.html" if target in (".", "") else target
        anchor_is_there = not link.fragment or unquote(link.fragment) in getattr(pages.get(target), "anchors", ())
        if target not in pages or not anchor_is_there:
            broken.append(element.attributes["href"])
    return broken


def test_every_link_and_anchor_leads_somewhere(pages):
    assert {name: broken for name, page in pages.items() if (broken := broken_links(name, page, pages))} == {}
    assert sum(len(page.all("a")) for page in pages.values()) > 200


def test_the_search_for_broken_links_finds_some():
    two = {"a/b.html": parse('<p id="x"></p>'), "index.html": parse("")}
    page = parse('<a href="b.html#x"><a href="../index.html"><a href="b.html#y"><a href="c.html"><a href="#z">')
    assert broken_links("a/b.html", page, two) == ["b.html#y", "c.html", "#z"]


def test_no_page_shows_a_path_of_the_machine_that_built_it(site):
    mine = {str(ROOT), str(site), str(Path.home()), f"/home/{getpass.getuser()}"} - {"/"}
    for path in site.rglob("*"):
        if path.is_file() and path.suffix not in (".png", ".gz"):
            text = path.read_text(encoding="utf-8")
            assert not [name for name in mine if re.search(re.escape(name) + r"(?![\w-])", text)], path
            assert "file://" not in text or path.suffix == ".js", path


def test_nothing_that_should_have_been_rendered_is_left_on_a_page(pages):
    for name, page in pages.items():
        for element in page.all("article", "pre"):
            assert "8<-" not in element.text, (name, "a directive, or the marker of a section")
        for element in page.all("p", "li", "td", "h1", "h2"):
            words = element.words
            assert not re.search(r"^description:|:::\s|\$\$|\w\]\[\w|^```", words, flags=re.M), (name, words)


def public_names(root: Path = ROOT / "tfdistedu") -> set[str]:
    """Return the dotted names of all modules, and of their public functions and classes that have a docstring."""
    names = set()
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
        private = any(part.startswith("_") for part in module.split("."))
        if private or module.startswith(NOT_IN_THE_REFERENCE) or module == "tfdistedu":
            continue
        names.add(module)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                names.add(f"{module}.{node.name}")
    return names


def test_the_reference_holds_every_module_and_every_public_name(pages):
    """A new module, or a new package without its page, is named here."""
    anchors = {anchor for name, page in pages.items() if name.startswith("reference/") for anchor in page.anchors}
    names = public_names()
    assert len(names) > 30
    missing = sorted(names - anchors)
    assert missing == [], "write docs/reference/PACKAGE.md with `::: tfdistedu.PACKAGE`, and name it in mkdocs.yml"


def test_no_anchor_stands_twice_on_a_page(pages):
    """A name that a package hands on would be shown a second time, and a link would find the wrong one."""
    for name, page in pages.items():
        anchors = [e.attributes["id"] for e in page.elements if e.attributes.get("id", "").startswith("tfdistedu.")]
        assert sorted(set(anchors)) == sorted(anchors), name


def test_each_page_of_the_reference_is_listed_on_its_first_page(pages):
    there = {name.removeprefix("reference/") for name in pages if name.startswith("reference/")} - {"index.html"}
    listed = {e.attributes.get("href") for e in pages["reference/index.html"].all("a")}
    assert there - listed == set()
