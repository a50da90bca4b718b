"""Everything shown has run: code on a page is a section of a tested file, and output is what a run printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.fresh_process import ROOT
from tests.site import recorded, snippets

SOURCES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
NAMES = [str(path.relative_to(ROOT)) for path in SOURCES]
# A section of these is shown, and tests run the whole file: the programs by the test below, the package by its tests,
# the lessons by tests/course, which also look that each line shown has run.
TESTED = ("docs/examples/", "tfdistedu/", "lessons/")


def blocks_of(path):
    return snippets.fenced_blocks(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_every_directive_is_quoted_and_names_a_section_with_both_its_ends(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if snippets.LOOKS_LIKE_A_DIRECTIVE.search(line):
            assert snippets.mistake_in_directive(line, ROOT) is None, f"{path.name}:{number}"


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("--8<-- file.py:part", "not of the form"),
        ("--8<-- 'file.py:part'", "not of the form"),
        ('--8<- "file.py:part"', "not of the form"),
        ('--8<-- "file.py:part" ; more', "not of the form"),
        ('--8<-- "fil.py:part"', "no file"),
        ('--8<-- "file.py:no"', "one start and then one end"),
        ('--8<-- "file.py:endless"', "one start and then one end"),
        ('--8<-- "file.py:startless"', "one start and then one end"),
        ('--8<-- "file.py:reversed"', "one start and then one end"),
        ('--8<-- "file.py:part"', None),
        ('--8<-- "file.py"', None),
    ],
)
def test_the_check_of_directives_finds_what_the_extension_lets_pass(tmp_path, line, mistake):
    marks = ["start:part", "end:part", "start:endless", "end:startless", "end:reversed", "start:reversed"]
    (tmp_path / "file.py").write_text("\n".join(f"# --8<-- [{mark}]\npass" for mark in marks), encoding="utf-8")
    found = snippets.mistake_in_directive(line, tmp_path)
    assert found is None if mistake is None else mistake in found


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_python_is_included_from_tested_files_and_output_from_recorded_runs(path):
    for block in blocks_of(path):
        place = f"{path.name}:{block.line}"
        files = [snippets.included(line) for line in block.lines]
        if block.language in ("python", "py", "pycon"):
            assert files, place
            assert all(file and file[0].startswith(TESTED) and file[1] for file in files), f"{place}: typed by hand"
        elif block.language == "text" and any(files):
            assert all(file and file[0].startswith("docs/recorded/") for file in files), place
        else:
            assert block.language in ("shell", "powershell", "text"), f"{place}: say which language it is"
            assert not any("import " in line or ">>>" in line for line in block.lines), f"{place}: Python in disguise"


def test_every_program_and_every_recorded_output_is_shown_somewhere():
    shown = {
        file[0] for path in SOURCES for b in blocks_of(path) for line in b.lines if (file := snippets.included(line))
    }
    there = {f"docs/examples/{path.name}" for path in recorded.EXAMPLES}
    there |= {f"docs/recorded/{path.name}" for path in recorded.RECORDED.glob("*.txt")}
    assert there - shown == set()
    assert {path.stem for path in recorded.RECORDED.glob("*.txt")} == {path.stem for path in recorded.EXAMPLES}


@pytest.mark.parametrize("example", recorded.EXAMPLES, ids=[path.stem for path in recorded.EXAMPLES])
def test_a_program_prints_what_its_page_shows(example, fresh_processes):
    words, numbers = recorded.words_and_numbers(recorded.run(example, fresh_processes))
    shown_words, shown_numbers = recorded.words_and_numbers(
        (recorded.RECORDED / f"{example.stem}.txt").read_text("utf-8")
    )
    assert words == shown_words, "run `python -m tests.site.recorded`, and look at what changed"
    # Two digits are printed; another processor adds float32 in another order, which may turn the last of them by one.
    assert numbers == pytest.approx(shown_numbers, abs=0.0101)


def test_two_outputs_that_differ_are_told_apart():
    assert recorded.words_and_numbers("loss 0.38, 22 steps") == ("loss #, # steps", [0.38, 22.0])
    assert recorded.words_and_numbers("loss 0.38")[1] != pytest.approx([0.40], abs=0.0101)


def commands_shown() -> list[tuple[str, list[str]]]:
    """Return each line of the shell blocks and each inline `tfdistedu ...` or `make ...`, as words, with its page."""
    found = []
    for path, name in zip(SOURCES, NAMES, strict=True):
        text = path.read_text(encoding="utf-8")
        lines = [
            line for b in snippets.fenced_blocks(text) if b.language in ("shell", "powershell") for line in b.lines
        ]
        outside = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
        lines += re.findall(r"`((?:tfdistedu|make) [^`]+)`", outside)
        found += [(name, shlex.split(line, comments=True, posix="\\" not in line)) for line in lines if line.strip()]
    return found


def unknown_command(words: list[str], commands_of: Callable[[tuple[str, ...]], set[str]]) -> str | None:
    """Return the first of the words after `tfdistedu` that is no command where one is needed, or `None`."""
    path: tuple[str, ...] = ()
    for word in words:
        if word.startswith("-") or (path and not commands_of(path)):
            return None  # an option, or the arguments of a command
        if word not in commands_of(path):
            return word
        path = (*path, word)
    return None


def test_every_command_shown_exists():
    """Every `tfdistedu X [Y]` is registered, every `make X` is a target: a page may not promise what is not there."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.M))
    missing = []
    shown = commands_shown()
    for page, words in shown:
        if words[0] == "make":
            missing += [f"{page}: make {w}" for w in words[1:] if "=" not in w and w not in targets]
        elif "tfdistedu" in words[:3]:
            after = words[words.index("tfdistedu") + 1 :]
            if unknown := unknown_command(after, commands_of):
                missing.append(f"{page}: tfdistedu {' '.join(after)}: no {unknown!r}")
    assert len(shown) > 10
    assert missing == []


def test_the_search_for_unknown_commands_finds_them_at_each_level():
    tree = {(): {"demo", "recipe"}, ("recipe",): {"show", "list"}}
    verdicts = {
        "demo": None,
        "demo --json out.json": None,
        "--version": None,
        "recipe show mirrored_fit": None,
        "recipe shwo mirrored_fit": "shwo",
        "dmeo": "dmeo",
    }
    assert {w: unknown_command(w.split(), lambda path: tree.get(path, set())) for w in verdicts} == verdicts


_HELP: dict[tuple[str, ...], set[str]] = {}


def commands_of(path: tuple[str, ...]) -> set[str]:
    """Return the sub-commands that `tfdistedu PATH --help` lists."""
    if path not in _HELP:
        words = [sys.executable, "-m", "tfdistedu", *path, "--help"]
        text = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout
        listed = text.split("Commands:\n", 1)[1] if "Commands:\n" in text else ""
        _HELP[path] = set(re.findall(r"^  ([a-z][\w-]*)", listed, flags=re.M))
    return _HELP[path]
