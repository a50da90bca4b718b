# stub.py is made by `make record`; your copy of it is exercise.py, and nothing overwrites that.
"""Lesson 13_crash: A crash that changes nothing.

A worker is killed in the middle of an epoch: how does the job end with the weights of a run in which nothing happened?

In exercise.py, replace what says "not started". Then: pytest lessons/13_crash
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tfdistedu.course.crash_disk import MOMENTUM, RATE, SEED, Disk


def predict_crash() -> dict[str, int]:
    """Predict for a training of 3 epochs with 10 batches each, which saves after steps 4, 8, 12 and so on.

    It is killed while it computes the gradient of its 19th step, counted over all epochs, and started again.

    Return {"steps_before_the_crash": ..., "steps_done_again": ..., "resumes_in_epoch": ..., "batches_skipped": ...}
    with your numbers: steps that were complete when it was killed; complete steps that have to be done again; the
    epoch, from 0, in which the second run begins; and how many batches of that epoch it leaves out, being saved.
    """
    raise NotImplementedError("crash.predict_crash: not started")


def train(disk: Disk, gradient_of: Callable[[np.ndarray, int], np.ndarray], n_batches: int, epochs: int) -> np.ndarray:
    """Train to the end, from where the disk stands: the weights are to be those of a run that nobody killed.

    SGD with momentum on float64 weights [2] that begin at zero: velocity = 0.9 velocity - 0.1 gradient, and the weights
    add it. The batches of an epoch come in the order `np.random.default_rng([7, epoch]).permutation(n_batches)`.
    Each step is to be saved.

    Args:
        disk: `has(name)`, `read(name)`, `write(name, value)`, `rename(old, new)`. A write may be cut short, and leaves
            half a file; a rename happens or does not.
        gradient_of: A function of (weights, number of a batch).
        n_batches: Batches in an epoch.
        epochs: Passes over the data in all.

    Returns:
        The weights at the end.
    """
    raise NotImplementedError("crash.train: not started")  # take this line out and repair the rest
    weight, velocity, first = np.zeros(2), np.zeros(2), 0
    if disk.has("checkpoint"):
        weight, first = disk.read("checkpoint")
    for epoch in range(first, epochs):
        for batch in np.random.default_rng([SEED, epoch]).permutation(n_batches):
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight = weight + velocity
            disk.write("checkpoint", (weight, epoch))
    return weight
