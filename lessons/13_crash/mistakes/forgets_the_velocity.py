"""The weights are the model, so they are what is saved."""

import numpy as np

ID = "forgets_the_velocity"
EXERCISE = "train"
BELIEVES = "The weights are the model, so they are what is saved."
TRUE = "The optimizer remembers, too: after a resume without it the next steps are others."
QUESTION = "What does the next step need, beside weights and a gradient?"
CAUGHT_BY = "test_killed_at_any_moment_it_ends_with_the_same_weights"
SEEN = "public report"


SEED, RATE, MOMENTUM = 7, 0.1, 0.9


def train(disk, gradient_of, n_batches, epochs):
    weight, velocity, epoch, place = np.zeros(2), np.zeros(2), 0, 0
    if disk.has("checkpoint"):
        weight, epoch, place = disk.read("checkpoint")
    while epoch < epochs:
        for batch in np.random.default_rng([SEED, epoch]).permutation(n_batches)[place:]:
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight, place = weight + velocity, place + 1
            disk.write("new", (weight, epoch, place))
            disk.rename("new", "checkpoint")
        epoch, place = epoch + 1, 0
    return weight


def twin(disk, gradient_of, n_batches, epochs):
    state = disk.read("state") if disk.has("state") else {"w": np.zeros(2), "at": 0}
    w, at, v = state["w"], state["at"], 0.0
    while at < epochs * n_batches:
        order = np.random.default_rng([SEED, at // n_batches]).permutation(n_batches)
        v = v * MOMENTUM - RATE * gradient_of(w, order[at % n_batches])
        w, at = w + v, at + 1
        disk.write("next", {"w": w, "at": at})
        disk.rename("next", "state")
    return w
