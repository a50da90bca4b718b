"""What is needed to go on is the weights and the epoch."""

from collections.abc import Callable

import numpy as np

from tfdistedu.course.crash_disk import MOMENTUM, RATE, SEED, Disk

ID = "as_found"
EXERCISE = "train"
BELIEVES = "What is needed to go on is the weights and the epoch."
TRUE = "The velocity, the place in the epoch and its order are needed too, and a file that is whole."
QUESTION = "What does a run know just before a step that a resumed one does not?"
CAUGHT_BY = "test_killed_at_any_moment_it_ends_with_the_same_weights"
SEEN = "ours"


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
    # --8<-- [start:found]
    weight, velocity, first = np.zeros(2), np.zeros(2), 0
    if disk.has("checkpoint"):
        weight, first = disk.read("checkpoint")
    for epoch in range(first, epochs):
        for batch in np.random.default_rng([SEED, epoch]).permutation(n_batches):
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight = weight + velocity
            disk.write("checkpoint", (weight, epoch))
    return weight
    # --8<-- [end:found]


def twin(disk, gradient_of, n_batches, epochs):
    w, begun = disk.read("kept") if disk.has("kept") else (np.zeros(2), 0)
    v = np.zeros(2)
    while begun < epochs:
        for batch in np.random.default_rng([SEED, begun]).permutation(n_batches).tolist():
            v = v * MOMENTUM - RATE * gradient_of(w, batch)
            w = w + v
            disk.write("kept", [w, begun])
        begun += 1
    return w
