"""The position can be counted up at the start of a step."""

import numpy as np

ID = "counts_the_step_before_it_is_done"
EXERCISE = "train"
BELIEVES = "The position can be counted up at the start of a step."
TRUE = "What is saved says that a batch is done whose gradient is not in the weights: it is left out."
QUESTION = "When the checkpoint says place 3, which batches are in its weights?"
CAUGHT_BY = "test_killed_at_any_moment_it_ends_with_the_same_weights"
SEEN = "ours"


SEED, RATE, MOMENTUM = 7, 0.1, 0.9


def train(disk, gradient_of, n_batches, epochs):
    weight, velocity, epoch, place = np.zeros(2), np.zeros(2), 0, 0
    if disk.has("checkpoint"):
        weight, velocity, epoch, place = disk.read("checkpoint")
    while epoch < epochs:
        for batch in np.random.default_rng([SEED, epoch]).permutation(n_batches)[place:]:
            place += 1
            disk.write("new", (weight, velocity, epoch, place))
            disk.rename("new", "checkpoint")
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight = weight + velocity
        epoch, place = epoch + 1, 0
    return weight


def twin(disk, gradient_of, n_batches, epochs):
    w, v, at = disk.read("state") if disk.has("state") else (np.zeros(2), np.zeros(2), 0)
    while at < epochs * n_batches:
        order, now = np.random.default_rng([SEED, at // n_batches]).permutation(n_batches), at % n_batches
        at += 1
        disk.write("tmp", (w, v, at))
        disk.rename("tmp", "state")
        v = v * MOMENTUM - RATE * gradient_of(w, order[now])
        w = w + v
    return w
