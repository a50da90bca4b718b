"""A checkpoint an epoch is enough."""

import numpy as np

ID = "saves_after_each_epoch"
EXERCISE = "train"
BELIEVES = "A checkpoint an epoch is enough."
TRUE = "It ends right, and a crash costs up to an epoch; here each step was to be saved."
QUESTION = "How many steps does the second run do again?"
CAUGHT_BY = "test_hardly_anything_is_done_again"
SEEN = "ours"


SEED, RATE, MOMENTUM = 7, 0.1, 0.9


def train(disk, gradient_of, n_batches, epochs):
    weight, velocity, epoch = np.zeros(2), np.zeros(2), 0
    if disk.has("checkpoint"):
        weight, velocity, epoch = disk.read("checkpoint")
    while epoch < epochs:
        for batch in np.random.default_rng([SEED, epoch]).permutation(n_batches):
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight = weight + velocity
        epoch += 1
        disk.write("new", (weight, velocity, epoch))
        disk.rename("new", "checkpoint")
    return weight


def twin(disk, gradient_of, n_batches, epochs):
    w, v, first = disk.read("kept") if disk.has("kept") else (np.zeros(2), np.zeros(2), 0)
    for number in range(first, epochs):
        for batch in np.random.default_rng([SEED, number]).permutation(n_batches):
            v = v * MOMENTUM - RATE * gradient_of(w, batch)
            w = w + v
        disk.write("tmp", [w, v, number + 1])
        disk.rename("tmp", "kept")
    return w
