"""Does a training that is killed at any moment end as one that is not? Is your prediction what the run counts?

Smallest case first. The argument of a test is the function under test.
"""

from pathlib import Path

from tfdistedu.course.diagnose import check_prediction
from tfdistedu.course.diagnose_crash import (
    check_every_moment,
    check_little_is_done_again,
    check_undisturbed,
    probe_crash,
    undisturbed,
)
from tfdistedu.course.diagnose_second_crash import check_killed_again, probe_killed_again
from tfdistedu.course.runner import attempt
from tfdistedu.course.subject import load_module

FOLDER = Path(__file__).parent
RIGHT = undisturbed()


def test_the_run_counts_the_same(predict_crash):
    right = load_module(FOLDER / "reference.py").predict_crash()
    check_prediction(predict_crash, right, "python lessons/13_crash/count_steps.py 3 10 4 19")


def probe_predict_crash(predict_crash):
    """What was guessed."""
    return attempt(predict_crash)


def test_without_a_crash_it_is_the_training(train):
    check_undisturbed(train, RIGHT)


def test_killed_at_any_moment_it_ends_with_the_same_weights(train):
    check_every_moment(train, RIGHT)


def test_killed_again_it_ends_with_the_same_weights(train):
    check_killed_again(train, RIGHT)


def test_hardly_anything_is_done_again(train):
    check_little_is_done_again(train)


def probe_train(train):
    """Weights and batches, killed at some moments, once and twice."""
    return probe_crash(train) + probe_killed_again(train)
