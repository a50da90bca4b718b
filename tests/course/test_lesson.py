"""A lesson's folder is checked, and every error names file and word."""

from __future__ import annotations

import pytest

from tests.fresh_process import ROOT
from tfdistedu.course.lesson import all_lessons, find_lesson, find_root, load_lesson
from tfdistedu.course.stubs import MOST_LINES, make_stub, stub_of
from tfdistedu.errors import BadInput

GOOD = (ROOT / "lessons" / "07_allreduce" / "lesson.toml").read_text(encoding="utf-8")


def folder_with(tmp_path, text, name="07_allreduce"):
    folder = tmp_path / "lessons" / name
    folder.mkdir(parents=True)
    (folder / "lesson.toml").write_text(text, encoding="utf-8")
    for file in ("stub.py", "test_exercise.py", "hints.md"):
        (folder / file).touch()
    return folder


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('slug = "allreduce"', "", "'slug' is missing"),
        ('slug = "allreduce"', 'slug = "all_reduce"', "does not fit the folder"),
        ("minutes = 45", 'minutes = "45"', "'minutes' is '45', which is no int"),
        ("minutes = 45", "minutes = true", "which is no int"),
        ("needs = []", "neds = []", "there is no key 'neds'"),
        ('kind = "implement"', 'kind = "write"', "there is no kind 'write'"),
        ('kind = "implement"', 'kind = "repair"', "'from' is for exercises of kind 'repair', and they need it"),
        ('grades = "all_reduce"', "", "'grades' is for exercises of kind 'tests', and they need it"),
        ('"variants.py:leftward_ring", "variants.py:ring_of_programs", ', "", "at least three right variants"),
        ('name = "predict_ring"', 'name = "check_ring"', "each with its own name"),
        ("[[exercise]]", "[[exercises]]", "there is no key 'exercises'"),
        ("minutes = 45", "minutes 45", "lesson.toml: Expected"),
    ],
)
def test_a_wrong_lesson_toml_is_refused_with_the_word_that_is_wrong(tmp_path, old, new, says):
    assert old in GOOD
    folder = folder_with(tmp_path, GOOD.replace(old, new))
    with pytest.raises(BadInput) as error:
        load_lesson(folder)
    assert says in str(error.value)
    assert "lesson.toml" in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    folder = folder_with(tmp_path, GOOD)
    (folder / "stub.py").unlink()
    with pytest.raises(BadInput, match=r"no stub\.py\. `make record` makes it"):
        load_lesson(folder)


def test_lessons_are_found_from_a_folder_upwards_and_never_where_the_package_is(tmp_path):
    folder = folder_with(tmp_path, GOOD)
    deep = folder / "mistakes"
    deep.mkdir()
    assert find_root(deep) == find_root(tmp_path) == tmp_path / "lessons"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "lessons").rename(tmp_path / "moved")
    with pytest.raises(BadInput, match="tfdistedu learn init"):
        find_root(elsewhere)


def test_a_lesson_is_found_by_slug_folder_and_number():
    root = ROOT / "lessons"
    assert {find_lesson(root, name).slug for name in ("allreduce", "07_allreduce", "lessons/07_allreduce/", "7")} == {
        "allreduce"
    }
    with pytest.raises(BadInput, match="there are custom_loop, allreduce"):
        find_lesson(root, "ring")


@pytest.mark.parametrize("lesson", all_lessons(ROOT / "lessons"), ids=lambda lesson: lesson.slug)
def test_a_stub_holds_the_task_and_not_the_answer(lesson):
    text = make_stub(lesson)
    compile(text, "stub.py", "exec")
    for exercise in lesson.exercises:
        assert text.count(f'raise NotImplementedError("{exercise.id}: not started")') == 1
    for leak in ("Costs:", "Returns:\n        A schedule of", "Example:", "@algorithm", "% n, False) for r"):
        assert leak not in text


def test_the_stub_of_the_ring_is_signature_first_paragraph_arguments_and_titles():
    lesson = find_lesson(ROOT / "lessons", "allreduce")
    stub = make_stub(lesson)
    function = stub[stub.index("def ring_all_gather") : stub.index("def predict_ring")].rstrip()
    assert function.splitlines() == [
        "def ring_all_gather(n_ranks: int) -> Schedule:",
        '    """All-gather in a ring: rank r starts with chunk r, and afterwards all have all. '
        "The second half of `ring`.",
        "",
        "    Args:",
        "        n_ranks: Number of ranks, 1 or more.",
        '    """',
        "    # Step 1: pass on what came last.",
        '    raise NotImplementedError("allreduce.ring_all_gather: not started")',
    ]


def test_a_step_in_a_loop_stands_at_the_bodys_level_and_a_long_reference_is_refused(tmp_path):
    import ast

    exercise = find_lesson(ROOT / "lessons", "allreduce").exercise("ring_all_gather")
    lines = "\n".join(f"        x = {number}" for number in range(MOST_LINES - 2))
    text = (
        f'def f():\n    """Do."""\n    for _ in range(3):\n        # Step 1: assign. Because.\n{lines}\n    return x\n'
    )
    stub = stub_of(text, ast.parse(text).body[0], exercise, tmp_path)
    assert "\n    # Step 1: assign.\n" in stub
    assert "Because" not in stub
    longer = text.replace("    return x", "    y = x\n    return y")
    with pytest.raises(BadInput, match=f"has {MOST_LINES + 1} lines, and a stub asks for at most {MOST_LINES}"):
        stub_of(longer, ast.parse(longer).body[0], exercise, tmp_path)
