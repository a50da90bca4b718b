"""Our answers to the exercises of this lesson. Try yours first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tfdistedu.course.crash_disk import MOMENTUM, RATE, SEED, Disk


def predict_crash() -> dict[str, int]:
    """Predict for a training of 3 epochs with 10 batches each, which saves after steps 4, 8, 12 and so on.

    It is killed while it computes the gradient of its 19th step, counted over all epochs, and started again.

    Return {"steps_before_the_crash": ..., "steps_done_again": ..., "resumes_in_epoch": ..., "batches_skipped": ...}
    with your numbers: steps that were complete when it was killed; complete steps that have to be done again; the
    epoch, from 0, in which the second run begins; and how many batches of that epoch it leaves out, being saved.
    """
    from tfdistedu.course.subject import load_module

    return load_module(Path(__file__).parent / "count_steps.py").numbers(3, 10, 4, 19)


# --8<-- [start:train]
def train(disk: Disk, gradient_of: Callable[[np.ndarray, int], np.ndarray], n_batches: int, epochs: int) -> np.ndarray:
    """Train to the end, from where the disk stands: the weights are those of a run that nobody killed."""
    # Step 1: go on from a checkpoint. Weight, velocity and position belong to one moment.
    weight, velocity, epoch, place = np.zeros(2), np.zeros(2), 0, 0
    if disk.has("checkpoint"):
        weight, velocity, epoch, place = disk.read("checkpoint")
    while epoch < epochs:
        # Step 2: the order of an epoch. Only seed and epoch decide, for a generator's state dies with the process.
        for batch in np.random.default_rng([SEED, epoch]).permutation(n_batches)[place:]:
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight, place = weight + velocity, place + 1
            # Step 3: save under another name, then rename. A write can be cut short, a rename cannot.
            disk.write("new", (weight, velocity, epoch, place))
            disk.rename("new", "checkpoint")
        epoch, place = epoch + 1, 0
    return weight


# --8<-- [end:train]
