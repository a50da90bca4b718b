"""A small file is written in no time."""

import numpy as np

ID = "writes_in_place"
EXERCISE = "train"
BELIEVES = "A small file is written in no time."
TRUE = "A process that is killed in mid-write leaves half a file, and the whole one is gone."
QUESTION = "What is on the disk while the checkpoint is being written?"
CAUGHT_BY = "test_killed_at_any_moment_it_ends_with_the_same_weights"
SEEN = "ours"


SEED, RATE, MOMENTUM = 7, 0.1, 0.9


def train(disk, gradient_of, n_batches, epochs):
    weight, velocity, epoch, place = np.zeros(2), np.zeros(2), 0, 0
    if disk.has("checkpoint"):
        weight, velocity, epoch, place = disk.read("checkpoint")
    while epoch < epochs:
        for batch in np.random.default_rng([SEED, epoch]).permutation(n_batches)[place:]:
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight, place = weight + velocity, place + 1
            disk.write("checkpoint", (weight, velocity, epoch, place))
        epoch, place = epoch + 1, 0
    return weight


def twin(disk, gradient_of, n_batches, epochs):
    w, v, at = disk.read("state") if disk.has("state") else (np.zeros(2), np.zeros(2), 0)
    while at < epochs * n_batches:
        order = np.random.default_rng([SEED, at // n_batches]).permutation(n_batches)
        v = v * MOMENTUM - RATE * gradient_of(w, order[at % n_batches])
        w, at = w + v, at + 1
        disk.write("state", (w, v, at))
    return w
