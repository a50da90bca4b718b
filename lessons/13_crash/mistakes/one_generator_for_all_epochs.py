"""One generator with a fixed seed gives the same orders in each run."""

import numpy as np

ID = "one_generator_for_all_epochs"
EXERCISE = "train"
BELIEVES = "One generator with a fixed seed gives the same orders in each run."
TRUE = "A resumed run draws the first order again, and takes it for a later epoch's."
QUESTION = "Which order does a run draw that begins in epoch 2?"
CAUGHT_BY = "test_killed_at_any_moment_it_ends_with_the_same_weights"
SEEN = "ours"


SEED, RATE, MOMENTUM = 7, 0.1, 0.9


def train(disk, gradient_of, n_batches, epochs):
    rng = np.random.default_rng([SEED, 0])
    orders = {0: rng.permutation(n_batches)}
    weight, velocity, epoch, place = np.zeros(2), np.zeros(2), 0, 0
    if disk.has("checkpoint"):
        weight, velocity, epoch, place = disk.read("checkpoint")
        orders = {epoch: orders[0]}
    while epoch < epochs:
        if epoch not in orders:
            orders[epoch] = np.random.default_rng([SEED, epoch]).permutation(n_batches)
        for batch in orders[epoch][place:]:
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight, place = weight + velocity, place + 1
            disk.write("new", (weight, velocity, epoch, place))
            disk.rename("new", "checkpoint")
        epoch, place = epoch + 1, 0
    return weight


def twin(disk, gradient_of, n_batches, epochs):
    w, v, at = disk.read("state") if disk.has("state") else (np.zeros(2), np.zeros(2), 0)
    begun = max(at - 1, 0) // n_batches
    while at < epochs * n_batches:
        epoch = at // n_batches
        order = np.random.default_rng([SEED, 0 if epoch == begun else epoch]).permutation(n_batches)
        v = v * MOMENTUM - RATE * gradient_of(w, order[at % n_batches])
        w, at = w + v, at + 1
        disk.write("tmp", (w, v, at))
        disk.rename("tmp", "state")
    return w
