"""The place is how many batches this run has done."""

import numpy as np

ID = "counts_from_the_resume"
EXERCISE = "train"
BELIEVES = "The place is how many batches this run has done."
TRUE = "After a resume it is that and the batches before; a second crash goes back too far."
QUESTION = "A resumed run begins at place 2 and does one batch: which place does it save?"
CAUGHT_BY = "test_killed_again_it_ends_with_the_same_weights"
SEEN = "ours"


SEED, RATE, MOMENTUM = 7, 0.1, 0.9


def train(disk, gradient_of, n_batches, epochs):
    weight, velocity, epoch, place = np.zeros(2), np.zeros(2), 0, 0
    if disk.has("checkpoint"):
        weight, velocity, epoch, place = disk.read("checkpoint")
    while epoch < epochs:
        for done, batch in enumerate(np.random.default_rng([SEED, epoch]).permutation(n_batches)[place:]):
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight = weight + velocity
            disk.write("new", (weight, velocity, epoch, done + 1))
            disk.rename("new", "checkpoint")
        epoch, place = epoch + 1, 0
    return weight


def twin(disk, gradient_of, n_batches, epochs):
    w, v, first, skip = disk.read("kept") if disk.has("kept") else (np.zeros(2), np.zeros(2), 0, 0)
    for number in range(first, epochs):
        done = 0
        for batch in np.random.default_rng([SEED, number]).permutation(n_batches).tolist()[skip:]:
            v = v * MOMENTUM - RATE * gradient_of(w, batch)
            w, done = w + v, done + 1
            disk.write("tmp", [w, v, number, done])
            disk.rename("tmp", "kept")
        skip = 0
    return w
