"""Did you read the stacks right, and do your workers meet in every call, whatever their data?

Smallest case first. The argument of a test is the function under test.
"""

from pathlib import Path

import numpy as np

from tfdistedu.course.diagnose import check_prediction
from tfdistedu.course.diagnose_meetings import check_agree, check_meets, check_result, probe_meetings
from tfdistedu.course.runner import attempt
from tfdistedu.course.subject import load_module

FOLDER = Path(__file__).parent


def batches(*sizes):
    """Return batches of these sizes for one worker; numbers tell who brought them."""
    return [np.arange(size) + 10.0 * place + size for place, size in enumerate(sizes)]


ALONE = [batches(2, 2)]
EVEN = [batches(2, 2), batches(1, 3)]
UNEVEN = [batches(2, 2, 2), batches(2, 3)]
NONE = [[], batches(2, 2)]
THREE = [batches(2), batches(1, 2, 3), batches(2, 2)]


def one_device(inputs):
    """Return what one device computes on the joined batches, in plain NumPy."""
    weight, losses = 0.0, []
    for place in range(max(map(len, inputs))):
        x = np.concatenate([mine[place] for mine in inputs if place < len(mine)])
        losses.append(float(np.mean((weight - x) ** 2)))
        weight -= 0.5 * float(np.mean(weight - x))
    return weight, losses, float(sum(batch.size for mine in inputs for batch in mine))


def test_the_run_says_the_same(predict_hang):
    right = load_module(FOLDER / "reference.py").predict_hang()
    check_prediction(predict_hang, right, "python lessons/12_hang/watch_hang.py 5 0:1 2:0,2")


def probe_predict_hang(predict_hang):
    """What was guessed."""
    return attempt(predict_hang)


def test_one_worker_meets_itself(train):
    check_result(train, ALONE, one_device(ALONE))


def test_two_workers_meet_in_every_call(train):
    check_meets(train, EVEN)


def test_two_workers_end_with_what_one_device_computes(train):
    check_agree(train, EVEN)
    check_result(train, EVEN, one_device(EVEN))


def test_nobody_hangs_when_one_has_fewer_batches(train):
    for inputs in (UNEVEN, NONE, THREE):
        check_meets(train, inputs)


def test_no_example_is_lost_when_one_has_fewer_batches(train):
    for inputs in (UNEVEN, NONE, THREE):
        check_agree(train, inputs)
        check_result(train, inputs, one_device(inputs))


def probe_train(train):
    """What comes out, or how it hangs, for each case; names of calls are left out."""
    return [probe_meetings(train, inputs) for inputs in (ALONE, EVEN, UNEVEN, NONE, THREE)]
