"""An epoch is what can be resumed; its batches are done again."""

import numpy as np

ID = "begins_the_epoch_anew"
EXERCISE = "train"
BELIEVES = "An epoch is what can be resumed; its batches are done again."
TRUE = "The batches that were done count twice."
QUESTION = "Which batches does the second run see, and which had the first one seen?"
CAUGHT_BY = "test_killed_at_any_moment_it_ends_with_the_same_weights"
SEEN = "public report"


SEED, RATE, MOMENTUM = 7, 0.1, 0.9


def train(disk, gradient_of, n_batches, epochs):
    weight, velocity, epoch = np.zeros(2), np.zeros(2), 0
    if disk.has("checkpoint"):
        weight, velocity, epoch = disk.read("checkpoint")
    while epoch < epochs:
        for batch in np.random.default_rng([SEED, epoch]).permutation(n_batches):
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight = weight + velocity
            disk.write("new", (weight, velocity, epoch))
            disk.rename("new", "checkpoint")
        epoch += 1
    return weight


def twin(disk, gradient_of, n_batches, epochs):
    w, v, first = disk.read("kept") if disk.has("kept") else (np.zeros(2), np.zeros(2), 0)
    for number in range(first, epochs):
        order = list(np.random.default_rng([SEED, number]).permutation(n_batches))
        while order:
            v = v * MOMENTUM - RATE * gradient_of(w, order.pop(0))
            w = w + v
            disk.write("tmp", [w, v, number])
            disk.rename("tmp", "kept")
    return w
