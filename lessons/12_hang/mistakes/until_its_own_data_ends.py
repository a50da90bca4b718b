"""The loop ends when the data ends."""

ID = "until_its_own_data_ends"
EXERCISE = "train"
BELIEVES = "The loop ends when the data ends."
TRUE = "It ends for this worker. The others call once more and wait for it."
QUESTION = "One worker has three batches, the other two. Who makes the tenth call?"
CAUGHT_BY = "test_nobody_hangs_when_one_has_fewer_batches"
SEEN = "https://github.com/tensorflow/tensorflow/issues/56885"


def train(group, batches):
    weight, losses = 0.0, []
    for batch in batches:
        error = weight - batch
        gradient = group.all_reduce("gradient", error.sum())
        loss = group.all_reduce("loss", (error**2).sum())
        count = group.all_reduce("count", error.size)
        weight -= 0.5 * gradient / count
        losses.append(loss / count)
    examples = group.all_reduce("examples", sum(batch.size for batch in batches))
    return weight, losses, examples


def twin(group, batches):
    w, history, seen = 0.0, [], 0
    position = 0
    while position < len(batches):
        x = batches[position]
        slope = group.all_reduce("slope", float((w - x).sum()))
        squares = group.all_reduce("squares", float(((w - x) ** 2).sum()))
        n = group.all_reduce("n", len(x))
        w, history = w - slope / (2 * n), [*history, squares / n]
        position, seen = position + 1, seen + len(x)
    return w, history, group.all_reduce("seen", seen)
