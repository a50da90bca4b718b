"""Does each example come once, in the global batches of one device? Is your prediction what the run counts?

Smallest case first. The argument of a test is the function under test.
"""

from pathlib import Path

from tfdistedu.course.diagnose import check_prediction
from tfdistedu.course.diagnose_input import (
    Case,
    check_global_batches,
    check_once,
    check_same_steps,
    check_shared_evenly,
    check_shuffled_anew,
    probe_input,
)
from tfdistedu.course.runner import attempt
from tfdistedu.course.subject import load_module

FOLDER = Path(__file__).parent
ALONE = Case(1, 6, 3)
EVEN = Case(2, 8, 4)
RAGGED = Case(3, 20, 6)
EMPTY = Case(3, 13, 6)  # the last step has one example: two workers have none
MANY = Case(4, 7, 3)  # more workers than examples in a step


def test_one_worker_sees_each_example_once(batches_of_worker):
    check_once(batches_of_worker, ALONE)


def test_all_workers_make_the_same_number_of_steps(batches_of_worker):
    for case in (EVEN, RAGGED, EMPTY, MANY):
        check_same_steps(batches_of_worker, case)


def test_each_example_comes_once_over_all_workers(batches_of_worker):
    for case in (EVEN, RAGGED, EMPTY, MANY):
        check_once(batches_of_worker, case)


def test_each_step_is_a_global_batch_of_one_device(batches_of_worker):
    for case in (ALONE, EVEN, RAGGED, EMPTY, MANY):
        check_global_batches(batches_of_worker, case)


def test_no_worker_has_two_examples_more_than_another(batches_of_worker):
    for case in (EVEN, RAGGED, EMPTY, MANY):
        check_shared_evenly(batches_of_worker, case)


def test_each_epoch_has_another_order_and_always_the_same(batches_of_worker):
    check_shuffled_anew(batches_of_worker, RAGGED)


def probe_batches_of_worker(batches_of_worker):
    """Who sees what, for each case; the order itself does not matter."""
    return [probe_input(batches_of_worker, case) for case in (ALONE, EVEN, RAGGED, EMPTY, MANY)]


def test_the_run_counts_the_same(predict_batches):
    right = load_module(FOLDER / "reference.py").predict_batches()
    check_prediction(predict_batches, right, "python lessons/11_multi_worker/count_batches.py 50 16 5")


def probe_predict_batches(predict_batches):
    """What was guessed."""
    return attempt(predict_batches)
