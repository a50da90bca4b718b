"""Answers that look right for one worker or one epoch, and right ones that look unlike ours."""

from __future__ import annotations

import numpy as np
import pytest

from tfdistedu.course.diagnose_input import (
    Case,
    check_global_batches,
    check_once,
    check_same_steps,
    check_shared_evenly,
    check_shuffled_anew,
)
from tfdistedu.course.wrong import Wrong

CASES = [Case(1, 6, 3), Case(2, 8, 4), Case(3, 20, 6), Case(3, 13, 6), Case(4, 7, 3)]


def sharing(order, share):
    """Make an answer: `order(n_examples, seed, epoch)` is cut into global batches, and `share(step, worker, n)`d."""

    def batches_of_worker(worker, n_workers, n_examples, global_batch, seed, epoch):
        mixed = order(n_examples, seed, epoch)
        steps = [mixed[start : start + global_batch] for start in range(0, n_examples, global_batch)]
        return [share(step, worker, n_workers) for step in steps]

    return batches_of_worker


def shuffled(n_examples, seed, epoch):
    return np.random.default_rng([seed, epoch]).permutation(n_examples)


def striped(step, worker, n_workers):
    return step[worker::n_workers]


def check_all(function):
    for case in CASES:
        check_same_steps(function, case)
        check_once(function, case)
        check_global_batches(function, case)
        check_shared_evenly(function, case)
    check_shuffled_anew(function, CASES[2])


@pytest.mark.parametrize(
    ("function", "told"),
    [
        # each of these five shows every example once, in the global batches of its own one-worker run
        (sharing(lambda n, seed, epoch: shuffled(n, 0, epoch), striped), "seed 8 has the order of seed 7"),
        (sharing(lambda n, seed, epoch: shuffled(n, seed, epoch % 2), striped), "epoch 2 has the order of epoch 0"),
        (sharing(lambda n, seed, epoch: np.roll(np.arange(n), epoch + seed), striped), "keep their neighbours"),
        (sharing(shuffled, lambda step, w, n: step if w == 0 else step[:0]), "worker 0 has 4 examples, worker 1"),
        (sharing(shuffled, lambda s, w, n: s[w * (len(s) // n) : None if w == n - 1 else (w + 1) * (len(s) // n)]),
         "worker 2 has 2 examples, worker 0 has 0"),
    ],
)  # fmt: skip
def test_an_answer_that_is_complete_and_yet_wrong_is_told_apart(function, told):
    with pytest.raises(Wrong, match=told):
        check_all(function)


@pytest.mark.parametrize(
    "function",
    [
        sharing(shuffled, lambda step, worker, n: np.array_split(step, n)[worker]),
        sharing(shuffled, lambda step, worker, n: step[worker::n].tolist()),
        sharing(lambda n, seed, epoch: np.random.RandomState(1000 * seed + epoch).permutation(n), striped),
    ],
)
def test_a_right_answer_may_be_written_otherwise(function):
    check_all(function)
