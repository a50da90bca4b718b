"""Who has no batch left begins anew, so that all have equally many."""

import numpy as np

ID = "repeats_its_data"
EXERCISE = "train"
BELIEVES = "Who has no batch left begins anew, so that all have equally many."
TRUE = "Nobody waits, and some examples count twice."
QUESTION = "How often does the worker with fewer batches use its first one?"
CAUGHT_BY = "test_no_example_is_lost_when_one_has_fewer_batches"
SEEN = "ours"


def train(group, batches):
    weight, losses, step = 0.0, [], 0
    while group.all_reduce("has a batch", step < len(batches)) > 0:
        batch = batches[step % len(batches)] if batches else np.zeros(0)
        step += 1
        error = weight - batch
        gradient = group.all_reduce("gradient", error.sum())
        loss = group.all_reduce("loss", (error**2).sum())
        count = group.all_reduce("count", error.size)
        weight -= 0.5 * gradient / count
        losses.append(loss / count)
    examples = group.all_reduce("examples", sum(batch.size for batch in batches))
    return weight, losses, examples


def twin(group, batches):
    import itertools

    w, history = 0.0, []
    left, endless = len(batches), itertools.cycle(batches or [np.zeros(0)])
    while group.all_reduce("left", max(left, 0)):
        x, left = next(endless), left - 1
        sq, slope, n = (group.all_reduce("sums", v) for v in (((w - x) ** 2).sum(), (w - x).sum(), len(x)))
        w, history = w - slope / n / 2, [*history, sq / n]
    return w, history, group.all_reduce("seen", sum(map(len, batches)))
