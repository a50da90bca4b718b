"""A wrong loop is told the first batch after which its weights are not one device's, and what that looks like."""

from __future__ import annotations

import pytest

from tests.fresh_process import ROOT
from tfdistedu.course.diagnose_training import check_weights
from tfdistedu.course.lesson import find_lesson
from tfdistedu.course.mistakes import load_mistakes
from tfdistedu.course.small_training import ONE_DEVICE, RAGGED, TWO_REPLICAS, expected
from tfdistedu.course.subject import resolve
from tfdistedu.course.wrong import Wrong

LESSON = find_lesson(ROOT / "lessons", "custom_loop")
RIGHT = resolve(LESSON, "reference.py:train")


def told(train, case) -> Wrong:
    with pytest.raises(Wrong) as caught:
        check_weights(train, case)
    return caught.value


def mistake(name):
    return next(each.function for each in load_mistakes(LESSON) if each.id == name)


def test_the_first_wrong_batch_is_named_and_who_got_how_much_of_it():
    # The last weights alone differ in every digit, and say nothing of where it began.
    wrong = told(mistake("mean_of_means"), RAGGED)
    assert "after batch 0 of epoch 0, weight 0 of replica 0 is not one device's" in wrong.what
    assert wrong.details["came"].endswith("; the replicas got [2, 2, 0] of its examples")
    assert float(wrong.details["expected"]) == pytest.approx(expected(RAGGED)[2][0][0], abs=1e-9)
    assert wrong.symptom == "the update is 2/3 of what it should be, and 2 of 3 replicas got examples"


@pytest.mark.parametrize(
    ("name", "case", "symptom"),
    [
        ("mean_on_each_replica", TWO_REPLICAS, "the update is 2 times too large, and there are 2 replicas"),
        ("divided_once_more", TWO_REPLICAS, "the update is 1/2 of what it should be, and there are 2 replicas"),
    ],
)
def test_after_a_single_update_the_ratio_is_told_and_no_batch(name, case, symptom):
    wrong = told(mistake(name), case)
    assert "after batch" not in wrong.what
    assert wrong.symptom == symptom


def test_a_loop_that_goes_wrong_in_the_second_epoch_is_right_before():
    def train(strategy, model, optimizer, loss, dataset, epochs=1):
        first = RIGHT(strategy, model, optimizer, loss, dataset, 1)
        optimizer.learning_rate.assign(0.25)
        return first + RIGHT(strategy, model, optimizer, loss, dataset, epochs - 1)

    wrong = told(train, RAGGED)
    assert "after batch 0 of epoch 1" in wrong.what
    assert wrong.symptom == ""


def test_a_loop_that_calls_the_loss_twice_is_told_of_its_last_weights_only():
    def train(strategy, model, optimizer, loss, dataset, epochs=1):
        def twice(y, predictions):
            return loss(y, predictions) + loss(y, predictions)

        return RIGHT(strategy, model, optimizer, twice, dataset, epochs)

    wrong = told(train, RAGGED)
    assert "after batch" not in wrong.what
    assert float(wrong.details["expected"]) == pytest.approx(expected(RAGGED)[0][0], abs=1e-9)


@pytest.mark.parametrize("case", [ONE_DEVICE, TWO_REPLICAS, RAGGED])
def test_the_reference_is_right_after_every_update(case):
    check_weights(RIGHT, case)
