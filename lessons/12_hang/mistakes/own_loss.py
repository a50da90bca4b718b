"""A loss that is only looked at needs no call."""

import numpy as np

ID = "own_loss"
EXERCISE = "train"
BELIEVES = "A loss that is only looked at needs no call."
TRUE = "Nothing hangs, and each worker reports the loss of its own examples."
QUESTION = "Which examples are in the loss that rank 0 prints?"
CAUGHT_BY = "test_two_workers_end_with_what_one_device_computes"
SEEN = "ours"


def train(group, batches):
    weight, losses, mine = 0.0, [], iter(batches)
    while True:
        batch = next(mine, None)
        if group.all_reduce("has a batch", batch is not None) == 0:
            break
        batch = np.zeros(0) if batch is None else batch
        error = weight - batch
        gradient = group.all_reduce("gradient", error.sum())
        count = group.all_reduce("count", error.size)
        weight -= 0.5 * gradient / count
        losses.append((error**2).sum() / max(error.size, 1))
    examples = group.all_reduce("examples", sum(batch.size for batch in batches))
    return weight, losses, examples


def twin(group, batches):
    w, history, place = 0.0, [], 0
    while group.all_reduce("more", place < len(batches)):
        x = batches[place] if place < len(batches) else np.zeros(0)
        n, slope = group.all_reduce("n", len(x)), group.all_reduce("slope", np.sum(w - x))
        history.append(float(np.mean((w - x) ** 2)) if len(x) else 0.0)
        w, place = w - slope / n / 2, place + 1
    return w, history, group.all_reduce("seen", sum(map(len, batches)))
