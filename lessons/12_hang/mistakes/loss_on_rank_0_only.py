"""The loss is only logged, so only rank 0 adds it up."""

import numpy as np

ID = "loss_on_rank_0_only"
EXERCISE = "train"
BELIEVES = "The loss is only logged, so only rank 0 adds it up."
TRUE = "Then rank 0 makes one call more in every step, and meets other calls of the others."
QUESTION = "Rank 0 makes three calls a step, rank 1 two. Whom does rank 0's third one meet?"
CAUGHT_BY = "test_two_workers_meet_in_every_call"
SEEN = "https://github.com/horovod/horovod/issues/100"


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
        if group.rank == 0:
            losses.append(group.all_reduce("loss", (error**2).sum()) / count)
    examples = group.all_reduce("examples", sum(batch.size for batch in batches))
    return weight, losses, examples


def twin(group, batches):
    w, history, place = 0.0, [], 0
    while group.all_reduce("more", place < len(batches)) > 0:
        x = batches[place] if place < len(batches) else np.zeros(0)
        slope, n = group.all_reduce("slope", float(np.sum(w - x))), group.all_reduce("n", len(x))
        squares = float(np.sum((w - x) ** 2))
        w, place = w - slope / n / 2, place + 1
        if group.rank < 1:
            history.append(group.all_reduce("squares", squares) / n)
    return w, history, group.all_reduce("seen", float(sum(map(len, batches))))
