"""In a notebook there is no file: `check` takes the function itself, says the same, and changes nothing on the disk."""

from __future__ import annotations

import pytest

from tests.fresh_process import ROOT
from tfdistedu.collectives.algorithms.rings import ring_all_gather
from tfdistedu.course import check
from tfdistedu.course.lesson import find_lesson
from tfdistedu.course.mistakes import load_mistakes
from tfdistedu.errors import BadInput


def test_a_right_function_passes_from_any_folder(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert check("allreduce.ring_all_gather", ring_all_gather)
    assert capsys.readouterr().out == "passed: allreduce.ring_all_gather\n"
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_is_named(capsys):
    (mistake,) = [
        each for each in load_mistakes(find_lesson(ROOT / "lessons", "allreduce")) if each.id == "goes_to_the_left"
    ]
    assert not check("allreduce.ring_all_gather", mistake.function)
    text = capsys.readouterr().out
    assert "right values on wrong links" in text
    assert "goes_to_the_left" in text


def test_a_function_from_a_cell_shows_its_own_lines(capsys):
    cell = "def mine(n_ranks):\n    return helper(n_ranks)\n\ndef helper(n_ranks):\n    return 1 // 0\n"
    names: dict = {}
    exec(compile(cell, "<ipython-input-1>", "exec"), names)
    assert not check("allreduce.ring_all_gather", names["mine"])
    text = capsys.readouterr().out
    assert "at <ipython-input-1>:2" in text
    assert "at <ipython-input-1>:5" in text
    assert "notebook.py" not in text


@pytest.mark.parametrize(
    ("name", "says"),
    [("allreduce", "slug.name"), ("allreduce.ring", "has no exercise"), ("ring.all", "there is no lesson")],
)
def test_a_wrong_name_says_what_there_is(name, says):
    with pytest.raises(BadInput, match=says):
        check(name, ring_all_gather)
