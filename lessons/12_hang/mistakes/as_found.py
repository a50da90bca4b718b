"""Each worker does what it needs, when it needs it."""

from collections.abc import Sequence

import numpy as np

from tfdistedu.links.meeting import Group

ID = "as_found"
EXERCISE = "train"
BELIEVES = "Each worker does what it needs, when it needs it."
TRUE = "Every call needs all workers, in one order. Here order and number depend on the rank and on the data."
QUESTION = "Which line does rank 0 reach first in a step, and which one does rank 1?"
CAUGHT_BY = "test_two_workers_meet_in_every_call"
SEEN = "ours"


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
    # --8<-- [start:found]
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
    # --8<-- [end:found]


def twin(group, batches):
    total, history, w = 0.0, [], 0.0
    for x in batches:
        names = ["squares", "slope"] if group.rank == 0 else ["slope", "squares"]
        own = {"squares": float(((w - x) ** 2).sum()), "slope": float((w - x).sum())}
        sums = {name: group.all_reduce(name, own[name]) for name in names}
        n = group.all_reduce("n", len(x))
        w = w - sums["slope"] / n / 2
        history += [sums["squares"] / n]
    if not group.rank:
        total = group.all_reduce("seen", float(sum(len(x) for x in batches)))
    return w, history, total
