"""Does your loop do on any number of replicas what one device does? Is your prediction what the run counts?

Smallest case first. The argument of a test is the function under test.
"""

from pathlib import Path

from tfdistedu.course.diagnose import check_prediction
from tfdistedu.course.diagnose_training import check_built, check_examples, check_losses, check_weights, probe
from tfdistedu.course.runner import attempt
from tfdistedu.course.small_training import ONE_DEVICE, RAGGED, TWO_REPLICAS
from tfdistedu.course.subject import load_module

FOLDER = Path(__file__).parent


def test_one_device_takes_one_step(train):
    check_weights(train, ONE_DEVICE)


def test_two_replicas_share_the_examples(train):
    check_examples(train, TWO_REPLICAS)


def test_two_replicas_take_the_step_of_one_device(train):
    check_weights(train, TWO_REPLICAS)


def test_ragged_batches_train_as_on_one_device(train):
    check_weights(train, RAGGED)


def test_the_loss_is_the_mean_over_all_examples(train):
    check_losses(train, ONE_DEVICE)
    check_losses(train, RAGGED)


def test_the_optimizer_is_built_before_the_first_step(train):
    check_built(train, TWO_REPLICAS)


def probe_train(train):
    """What it does: weights, losses, and who saw what."""
    return probe(train)


def test_the_run_counts_the_same(predict_counts):
    right = load_module(FOLDER / "reference.py").predict_counts()
    check_prediction(predict_counts, right, "python lessons/05_custom_loop/count_runs.py 4 10 4 2")


def probe_predict_counts(predict_counts):
    """What was guessed."""
    return attempt(predict_counts)
