# stub.py is made by `make record`; your copy of it is exercise.py, and nothing overwrites that.
"""Lesson 12_hang: A job that hangs.

All processes live, none says a word, nothing moves: who waits for whom, and which line is to blame?

In exercise.py, replace what says "not started". Then: pytest lessons/12_hang
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfdistedu.links.meeting import Group


def predict_hang() -> dict[str, int]:
    """Read the second stacks of the page (it is `page.md` in this folder), and say who waits for whom.

    Three workers ran `job.py`, five steps each. worker:0 evaluates after step 1, worker:2 after steps 0 and 2, and
    worker:1 never.

    Return {"workers_that_wait": ..., "waits_for_worker": ..., "all_reduces_that_ended": ..., "first_wrong_meeting":
    ...} with your numbers: how many wait; the worker that all of them wait for; how many all-reduces ended on all
    three; and the number, from 0, of the first all-reduce in which the three meant different things.
    """
    raise NotImplementedError("hang.predict_hang: not started")


def train(group: Group, batches: Sequence[np.ndarray]) -> tuple[float, list[float], float]:
    """Fit one weight to numbers, on all workers: the result is to be one device's on the joined batches.

    In step k all workers' k-th batches are one global batch: the gradient is the mean of `weight - x` over it, the loss
    the mean of `(weight - x) ** 2`, and the rate is 0.5. A worker may have fewer batches than another, or none.

    Args:
        group: `rank`, `n_ranks`, and `all_reduce(name, value)`, which adds up over all workers and waits for all.
        batches: This worker's batches, one-dimensional.

    Returns:
        The weight, the loss of each step, and the number of examples of all workers; the same on all workers.
    """
    raise NotImplementedError("hang.train: not started")  # take this line out and repair the rest
    weight, losses = 0.0, []
    for batch in batches:
        error = weight - batch
        if group.rank == 0:  # the loss is wanted here, so it comes first
            loss = group.all_reduce("loss", (error**2).sum())
            gradient = group.all_reduce("gradient", error.sum())
        else:
            gradient = group.all_reduce("gradient", error.sum())
            loss = group.all_reduce("loss", (error**2).sum())
        count = group.all_reduce("count", error.size)
        weight -= 0.5 * gradient / count
        losses.append(loss / count)
    examples = 0.0
    if group.rank == 0:  # only one of them prints it
        examples = group.all_reduce("examples", sum(batch.size for batch in batches))
    return weight, losses, examples
