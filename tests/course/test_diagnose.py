"""A wrong answer is told in three layers, and the third is silent when it is not certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fresh_process import ROOT
from tfdistedu.collectives import Schedule, Transfer
from tfdistedu.course.deadline import deadline
from tfdistedu.course.lesson import find_lesson, load_lesson
from tfdistedu.course.mistakes import load_mistakes
from tfdistedu.course.runner import LessonTests
from tfdistedu.errors import DeadlineExceeded
from tfdistedu.links import run_ranks

ALLREDUCE = find_lesson(ROOT / "lessons", "allreduce")
TESTS = LessonTests(ALLREDUCE)
GATHER = ALLREDUCE.exercise("ring_all_gather")


def failure_of(function):
    (failure,) = TESTS.check(GATHER, function)
    return failure


def gather(chunk, dst=lambda r, n: (r + 1) % n, rounds=lambda n: n - 1, reduce=False):
    """Make an all-gather of a formula for the chunk, and what else somebody may get wrong."""

    def ring_all_gather(n):
        made = [[Transfer(r, dst(r, n), chunk(r, s, n), reduce) for r in range(n)] for s in range(rounds(n))]
        return Schedule("mine", n, n, made)

    return ring_all_gather


def test_the_first_divergence_names_round_rank_and_chunk():
    failure = failure_of(gather(lambda r, s, n: (r + s) % n))
    assert failure.what == "ring_all_gather(3), round 1: rank 0 sends chunk 1 and does not have it yet."
    assert failure.details["came"] == "round 1: rank 0 --chunk 1--> rank 1"
    assert failure.details["expected"].endswith("chunks 0 and 2")
    assert failure.mistake.id == "counts_the_wrong_way"


@pytest.mark.parametrize(
    ("function", "symptom"),
    [
        (gather(lambda r, s, n: r, rounds=lambda n: 0), "every rank ends with its own chunk only"),
        (gather(lambda r, s, n: (r - s) % n, rounds=lambda n: min(n - 1, 1)), "every rank lacks 1 of 3 chunks"),
        (gather(lambda r, s, n: (r + s) % n, dst=lambda r, n: (r - 1) % n), "right values on wrong links"),
        (gather(lambda r, s, n: (r - s) % n, rounds=lambda n: n if n > 1 else 0), "more bytes than needed"),
    ],
)  # fmt: skip
def test_what_the_whole_looks_like(function, symptom):
    assert failure_of(function).symptom == symptom


def test_two_mistakes_at_once_get_no_name_and_still_a_place():
    # A matcher that takes the nearest known mistake would name one of the two, and send the learner the wrong way.
    failure = failure_of(gather(lambda r, s, n: (r + s) % n, reduce=True))
    assert failure.mistake is None
    assert "rank 1 adds chunk 0" in failure.what


def test_a_fingerprint_that_two_mistakes_share_names_none(monkeypatch):
    (mistake,) = [each for each in load_mistakes(ALLREDUCE) if each.id == "goes_to_the_left"]
    known = TESTS.mistakes("ring_all_gather")
    double = next(each for each in known if each.id == "goes_to_the_left")._replace(id="another")
    monkeypatch.setattr(TESTS, "mistakes", lambda name: [*known, double])
    assert failure_of(mistake.function).mistake is None


def test_neither_the_learners_nor_a_mistakes_source_is_needed(monkeypatch, tmp_path):
    # Only what was recorded is there: no mistake's file can be read, and the learner's function has none.
    (mistake,) = [each for each in load_mistakes(ALLREDUCE) if each.id == "one_round_short"]
    names: dict = {"Schedule": Schedule, "Transfer": Transfer}
    text = mistake.file.read_text(encoding="utf-8")
    exec(text[text.index("def ring_all_gather") : text.index("def twin")], names)
    monkeypatch.setattr("tfdistedu.course.mistakes.load_mistakes", lambda lesson: pytest.fail("read a mistake"))
    assert failure_of(names["ring_all_gather"]).mistake.id == "one_round_short"


def test_a_deadlock_says_who_waits_for_whom_in_which_line():
    tiny = load_lesson(Path(__file__).parent / "fixture" / "lessons" / "01_tiny")

    def spread(n_ranks):
        return run_ranks(lambda link, x: link.recv((link.rank + 1) % 2), [1, 2])

    (failure,) = LessonTests(tiny).check(tiny.exercises[0], spread)
    text = " ".join(failure.text(200).split())
    for rank in (0, 1):
        assert f"rank {rank} waits for a message from rank {1 - rank}: test_diagnose.py:" in text


def test_a_line_that_is_reached_many_times_is_shown_once():
    def ring_all_gather(n):
        return ring_all_gather(n)

    failure = failure_of(ring_all_gather)
    assert "RecursionError" in failure.what
    assert len(failure.lines) == 1


def test_a_loop_without_an_end_is_ended_even_if_it_catches_everything():
    with pytest.raises(DeadlineExceeded, match=r"did not end within 0\.1 s; it was at test_diagnose\.py:\d+: "):  # noqa: PT012, SIM117
        with deadline(0.1, __file__):
            while True:
                try:
                    sum(range(1000))
                except BaseException:  # noqa: BLE001, RUF100
                    break


@pytest.mark.parametrize("width", [30, 40, 60, 100])
def test_a_text_fits_its_width(width):
    text = failure_of(gather(lambda r, s, n: (r + s) % n)).text(width)
    assert max(map(len, text.splitlines())) <= width
