"""What was skipped in the resumed epoch is skipped in each one that follows."""

import numpy as np

ID = "skips_in_each_epoch"
EXERCISE = "train"
BELIEVES = "What was skipped in the resumed epoch is skipped in each one that follows."
TRUE = "The position belongs to one epoch; in the next one those batches are lost."
QUESTION = "At which batch does the epoch after the resumed one begin?"
CAUGHT_BY = "test_killed_at_any_moment_it_ends_with_the_same_weights"
SEEN = "ours"


SEED, RATE, MOMENTUM = 7, 0.1, 0.9


def train(disk, gradient_of, n_batches, epochs):
    weight, velocity, epoch, skip = np.zeros(2), np.zeros(2), 0, 0
    if disk.has("checkpoint"):
        weight, velocity, epoch, skip = disk.read("checkpoint")
    while epoch < epochs:
        place = skip
        for batch in np.random.default_rng([SEED, epoch]).permutation(n_batches)[skip:]:
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight, place = weight + velocity, place + 1
            disk.write("new", (weight, velocity, epoch, place))
            disk.rename("new", "checkpoint")
        epoch += 1
    return weight


def twin(disk, gradient_of, n_batches, epochs):
    w, v, first, skip = disk.read("kept") if disk.has("kept") else (np.zeros(2), np.zeros(2), 0, 0)
    for number in range(first, epochs):
        order = np.random.default_rng([SEED, number]).permutation(n_batches).tolist()
        for at in range(skip, n_batches):
            v = v * MOMENTUM - RATE * gradient_of(w, order[at])
            w = w + v
            disk.write("tmp", [w, v, number, at + 1])
            disk.rename("tmp", "kept")
    return w
