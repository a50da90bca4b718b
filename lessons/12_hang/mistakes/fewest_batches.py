"""All stop when the first one has no batch left: then nobody waits."""

ID = "fewest_batches"
EXERCISE = "train"
BELIEVES = "All stop when the first one has no batch left: then nobody waits."
TRUE = "Nobody waits, and the batches that others still have are never seen."
QUESTION = "Three batches here, two there: how many examples are in the weight?"
CAUGHT_BY = "test_no_example_is_lost_when_one_has_fewer_batches"
SEEN = "ours"


def train(group, batches):
    weight, losses, mine = 0.0, [], iter(batches)
    while True:
        batch = next(mine, None)
        if group.all_reduce("has a batch", batch is not None) < group.n_ranks:
            break
        error = weight - batch
        gradient = group.all_reduce("gradient", error.sum())
        loss = group.all_reduce("loss", (error**2).sum())
        count = group.all_reduce("count", error.size)
        weight -= 0.5 * gradient / count
        losses.append(loss / count)
    examples = group.all_reduce("examples", sum(batch.size for batch in batches))
    return weight, losses, examples


def twin(group, batches):
    w, history, place = 0.0, [], 0
    while not group.all_reduce("empty", place >= len(batches)):
        x, place = batches[place], place + 1
        slope, n = group.all_reduce("slope", sum(w - x)), group.all_reduce("n", len(x))
        history.append(group.all_reduce("squares", sum((w - x) ** 2)) / n)
        w = w - slope / n / 2
    return w, history, group.all_reduce("seen", sum(map(len, batches)))
