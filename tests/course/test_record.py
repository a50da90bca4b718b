"""What is recorded stays true: a changed reference turns drift checks red, and one command makes all green again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.fresh_process import ROOT
from tfdistedu.course import gate, pages, record, shown
from tfdistedu.course.lesson import all_lessons, load_lesson

FIXTURE = Path(__file__).parent / "fixture"
LESSONS = {lesson.slug: (lesson, ROOT) for lesson in all_lessons(ROOT / "lessons")}
LESSONS["tiny"] = (load_lesson(FIXTURE / "lessons" / "01_tiny"), FIXTURE)


@pytest.mark.parametrize("slug", LESSONS)
def test_recorded_files_are_what_make_record_makes(slug):
    lesson, base = LESSONS[slug]
    found = record.drifts(lesson, base / "docs")
    assert not found, "\n".join(drift.why for drift in found)


@pytest.mark.parametrize("slug", LESSONS)
def test_the_page_says_only_what_is_so(slug):
    lesson, base = LESSONS[slug]
    assert pages.problems(lesson, base) == []


@pytest.mark.filterwarnings("ignore:Even though the .tf.config.experimental_run_functions_eagerly")
@pytest.mark.parametrize("slug", LESSONS)
def test_every_line_of_python_that_a_page_shows_was_executed(slug):
    # TensorFlow's functions run eagerly here: what AutoGraph rewrote would not be seen.
    lesson, base = LESSONS[slug]
    assert shown.not_executed(lesson, base, eagerly=slug == "custom_loop") == []


@pytest.fixture
def copy(tmp_path):
    """A copy of the fixture that a test may change."""
    shutil.copytree(FIXTURE, tmp_path / "course")
    return tmp_path / "course"


def state(base: Path) -> tuple[list[str], list[record.Drift], list[str]]:
    """Return what the gate, the drift checks and the page's checks find."""
    lesson = load_lesson(base / "lessons" / "01_tiny")
    wrong = [row.problem for row in gate.check_lesson(lesson) if row.problem]
    wrong += shown.not_executed(lesson, base)
    return wrong, record.drifts(lesson, base / "docs"), pages.problems(lesson, base)


def test_another_right_reference_is_red_in_drift_checks_alone_and_green_after_make_record(copy):
    assert state(copy) == ([], [], [])
    before = {
        path: path.read_text(encoding="utf-8") for path in copy.rglob("*") if path.suffix in (".py", ".md", ".svg")
    }
    shutil.copyfile(copy / "another_reference.py", copy / "lessons" / "01_tiny" / "reference.py")
    made = ["stub.py", "picture.svg", "trace.txt", "values.json", "tiny.md", "page.md"]
    wrong, drifts, problems = state(copy)
    assert (wrong, problems) == ([], [])
    assert {drift.file.name for drift in drifts} == set(made)
    assert all(drift.why.endswith("Run: make record") for drift in drifts)
    changed = record.record(copy / "lessons", copy / "docs")
    assert {path.name for path in changed} == {drift.file.name for drift in drifts}
    assert state(copy) == ([], [], [])
    page = copy / "docs" / "lessons" / "tiny.md"
    assert '<data value="tiny.all_rounds">12 kB</data>' in before[page]
    assert '<data value="tiny.all_rounds">8 kB</data>' in page.read_text(encoding="utf-8")
    readable = (copy / "lessons" / "01_tiny" / "page.md").read_text(encoding="utf-8")
    assert readable.startswith("<!-- Made by `make record` from docs/lessons/tiny.md")
    assert "have *= 2" in readable
    assert "All rounds together take 8 kB." in readable
    assert "let everybody who has it send it" in (copy / "lessons" / "01_tiny" / "stub.py").read_text(encoding="utf-8")


def test_a_link_in_the_page_beside_an_exercise_leads_somewhere(copy):
    for lesson, _ in LESSONS.values():
        text = (lesson.folder / "page.md").read_text(encoding="utf-8")
        links = re.findall(r"\]\((?!https?:)([^)]+)\)", text)
        assert all((lesson.folder / link).is_file() for link in links), (lesson.slug, links)
    page = copy / "docs" / "lessons" / "tiny.md"
    more = "\n[Here](tiny.md#next), [the step](../synchronous/step.md), [TensorFlow](https://tensorflow.org).\n"
    page.write_text(page.read_text(encoding="utf-8") + more, encoding="utf-8")
    text = pages.readable(load_lesson(copy / "lessons" / "01_tiny"), copy)
    assert "[Here](../01_tiny/page.md), the step (on the site), [TensorFlow](https://tensorflow.org)." in text


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('<data value="tiny.all_rounds">12 kB</data>', "12 kB", "a bare number with a unit: '12 kB'"),
        ('<data value="tiny.all_rounds">12 kB</data>', "0.40 GB/s", "a bare number with a unit: '0.40 GB/s'"),
        ('<data value="tiny.all_rounds">12 kB</data>', "97%", "a bare number with a unit: '97%'"),
        (">12 kB</data>", ">13 kB</data>", "is '12 kB' and the page says '13 kB'"),
        ("tiny.all_rounds", "tiny.none", "'tiny.none' is not recorded"),
        ('--8<-- "lessons/01_tiny/reference.py:spread"', "x = 1", "included sections and nothing else"),
        ('--8<-- "lessons/01_tiny/reference.py:spread"', "--8<-- reference.py:spread", "not of the form"),
        ("reference.py:spread", "reference.py:nothing", "needs one start and then one end marker"),
        ("reference.py:spread", "refrence.py:spread", "there is no file"),
        ("## Take away", "## Takeaway", "there is no part '## Take away'"),
        ("`spread`", "it", "never names the exercise `spread`"),
        ("# A broadcast", "# A broadcast\n\n" + "word " * 1200, "a page has at most 1200"),
    ],
)  # fmt: skip
def test_a_page_that_says_something_else_is_seen(copy, old, new, says):
    page = copy / "docs" / "lessons" / "tiny.md"
    text = page.read_text(encoding="utf-8")
    assert old in text
    page.write_text(text.replace(old, new), encoding="utf-8")
    found = pages.problems(load_lesson(copy / "lessons" / "01_tiny"), copy)
    assert says in "\n".join(found)


def test_a_missing_end_marker_and_a_line_that_never_ran_are_seen(copy):
    file = copy / "lessons" / "01_tiny" / "reference.py"
    text = file.read_text(encoding="utf-8")
    lesson = load_lesson(copy / "lessons" / "01_tiny")
    file.write_text(text.replace("# --8<-- [end:spread]", ""), encoding="utf-8")
    assert "needs one start and then one end marker" in pages.problems(lesson, copy)[0]
    idle = "    if n_ranks < 0:\n        n_ranks = 0\n    return Schedule"
    file.write_text(text.replace("    return Schedule", idle), encoding="utf-8")
    assert [line.split(": ")[1] for line in shown.not_executed(lesson, copy)] == ["n_ranks = 0"]


def test_the_repositorys_own_command_records_into_lessons_and_docs(copy, capsys):
    (copy / "lessons" / "01_tiny" / "stub.py").write_text("", encoding="utf-8")
    assert record.main([str(copy)]) == 0
    assert capsys.readouterr().out.splitlines() == ["wrote lessons/01_tiny/stub.py", "1 files changed"]
