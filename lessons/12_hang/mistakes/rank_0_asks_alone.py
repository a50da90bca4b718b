"""A sum that only one worker prints is only that worker's business."""

import numpy as np

ID = "rank_0_asks_alone"
EXERCISE = "train"
BELIEVES = "A sum that only one worker prints is only that worker's business."
TRUE = "An all-reduce needs all, whoever uses its result. Rank 0 waits for workers that have finished."
QUESTION = "The others have returned. Who answers rank 0's last call?"
CAUGHT_BY = "test_two_workers_meet_in_every_call"
SEEN = "https://github.com/horovod/horovod/issues/2107"


def train(group, batches):
    weight, losses, mine = 0.0, [], iter(batches)
    while True:
        batch = next(mine, None)
        if group.all_reduce("has a batch", batch is not None) == 0:
            break
        batch = np.zeros(0) if batch is None else batch
        error = weight - batch
        gradient = group.all_reduce("gradient", error.sum())
        loss = group.all_reduce("loss", (error**2).sum())
        count = group.all_reduce("count", error.size)
        weight -= 0.5 * gradient / count
        losses.append(loss / count)
    examples = sum(batch.size for batch in batches)
    if group.rank == 0:
        examples = group.all_reduce("examples", examples)
    return weight, losses, examples


def twin(group, batches):
    most = 0
    while group.all_reduce("more", most < len(batches)):
        most += 1
    padded = [*batches, *[np.zeros(0)] * (most - len(batches))]
    w, history = 0.0, []
    for x in padded:
        sums = [
            group.all_reduce("n", len(x)),
            group.all_reduce("slope", sum(w - x)),
            group.all_reduce("sq", sum((w - x) ** 2)),
        ]
        w, history = w - sums[1] / sums[0] / 2, [*history, sums[2] / sums[0]]
    seen = sum(map(len, batches))
    return w, history, seen if group.rank else group.all_reduce("seen", seen)
