# stub.py is made by `make record`; your copy of it is exercise.py, and nothing overwrites that.
"""Lesson 11_multi_worker: Each example once, over all workers.

Three workers read the same data: how does each example come exactly once, and every step is one device's?

In exercise.py, replace what says "not started". Then: pytest lessons/11_multi_worker
"""

from __future__ import annotations

import numpy as np


def batches_of_worker(
    worker: int, n_workers: int, n_examples: int, global_batch: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Give one worker the numbers of its examples, one array for each step of an epoch.

    Args:
        worker: Which one, 0 to n_workers - 1.
        n_workers: How many there are.
        n_examples: Length of the data.
        global_batch: Examples of all workers in one step, shared evenly; the last step may have fewer.
        seed: Chosen once for the whole training; another seed, another order.
        epoch: The number of this pass over the data.
    """
    # Step 1: one order for all workers.
    # Step 2: cut it into global batches, as one device would.
    # Step 3: share each step out.
    raise NotImplementedError("multi_worker.batches_of_worker: not started")


def predict_batches() -> dict[str, int]:
    """Count for 50 examples, a global batch of 16 and 5 workers, each step shared out as the page does it.

    Return {"steps": ..., "examples_of_worker_0": ..., "empty_batches": ..., "lost_if_all_stop_at_the_first_empty": ...}
    with your numbers: steps of an epoch; examples that worker 0 sees in it; how many of all workers' batches are empty;
    and how many examples nobody would see if all stopped before the first step in which a worker has none.
    """
    raise NotImplementedError("multi_worker.predict_batches: not started")
