"""One worker is content, and all have to stop: a decision that is made together."""


# --8<-- [start:stop]
def train_until_good(group, step, good, most=100):
    """Train until every worker's own loss is good; all stop after the same step."""
    done = 0
    while done < most:
        loss, done = step(), done + 1  # the loss is of this worker alone, so it differs
        content = group.all_reduce("content", loss < good)
        if content == group.n_ranks:  # the same number on all, so all leave here or nobody does
            break
    if group.rank == 0:
        print(f"all content after {done} steps")  # one may print: no call depends on it
    return done


# --8<-- [end:stop]
