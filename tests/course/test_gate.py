"""May the lessons go out? The author's gate, one test a row; and each of its questions can be answered with no."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fresh_process import ROOT
from tfdistedu.course import gate
from tfdistedu.course.lesson import all_lessons, load_lesson

LESSONS = {lesson.slug: lesson for lesson in all_lessons(ROOT / "lessons")}


@pytest.mark.parametrize("slug", LESSONS)
def test_every_exercise_is_fair(slug):
    rows = list(gate.check_lesson(LESSONS[slug]))
    assert not [row for row in rows if row.problem], gate.table(rows)
    # An empty folder of mistakes would pass too.
    assert sum(row.subject.startswith("twin of") for row in rows) >= 3


@pytest.fixture
def copy(tmp_path):
    """A copy of lesson allreduce that a test may spoil."""
    folder = tmp_path / "lessons" / "07_allreduce"
    shutil.copytree(LESSONS["allreduce"].folder, folder, ignore=shutil.ignore_patterns("exercise*"))
    return folder


def problems(folder: Path, subject: str, only: str = "ring_all_gather") -> list[str]:
    return [row.problem for row in gate.check_lesson(load_lesson(folder), only) if row.subject == subject]


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_a_stub_that_holds_the_answer_is_seen(copy):
    change(
        copy / "stub.py",
        'raise NotImplementedError("allreduce.predict_ring: not started")',
        'return {"rounds": 12, "bytes_sent_by_rank_0": 9600, "additions_in_rank_0": 1200}',
    )
    assert "test_the_run_says_the_same passes on the stub" in problems(copy, "stub", "predict_ring")


def test_a_mistake_that_is_none_is_seen(copy):
    change(copy / "mistakes" / "goes_to_the_left.py", "(r - 1) % n, (r + s) % n", "(r + 1) % n, (r - s) % n")
    assert problems(copy, "goes_to_the_left") == ["no test rejects it"]


def test_a_mistake_that_another_test_rejects_is_seen(copy):
    change(copy / "mistakes" / "goes_to_the_left.py", "test_it_is_a_ring_to_the_right", "test_one_rank_sends_nothing")
    assert problems(copy, "goes_to_the_left")[0].startswith("test_one_rank_sends_nothing does not reject it")


def test_a_mistake_under_another_name_is_seen(copy):
    same = (copy / "mistakes" / "goes_to_the_left.py").read_text(encoding="utf-8")
    target = copy / "mistakes" / "counts_the_wrong_way.py"
    target.write_text(same.replace('ID = "goes_to_the_left"', 'ID = "counts_the_wrong_way"'), encoding="utf-8")
    assert problems(copy, "counts_the_wrong_way") == ["it is called goes_to_the_left"]
    assert problems(copy, "all differ")[0] == "goes_to_the_left does what counts_the_wrong_way does"


def test_a_twin_that_does_something_else_is_seen(copy):
    change(copy / "mistakes" / "one_round_short.py", "while step < n_ranks - 2", "while step < n_ranks - 3")
    assert "called by its name" in problems(copy, "twin of one_round_short")[0]


def test_a_test_that_nothing_ever_runs_is_seen(copy):
    change(copy / "test_exercise.py", "def test_the_run_says_the_same(predict_ring)", "def test_the_run_says(other)")
    assert "nothing ever runs it" in problems(copy, "test_the_run_says")[0]


def test_a_mistake_that_the_reference_lets_through_is_seen(copy):
    change(copy / "mistakes" / "divides_by_n.py", "buffer / len(arrays)", "buffer")
    assert problems(copy, "divides_by_n", "check_ring") == ["the reference's tests let it through"]


def test_missing_hints_are_seen(copy):
    change(copy / "hints.md", "3. Rounds: two halves", "Rounds: two halves")
    assert "has 2 hints" in "".join(problems(copy, "hints and number", "predict_ring"))
