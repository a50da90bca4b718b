"""Our answers to the exercises of this lesson. Try yours first."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def batches_of_worker(
    worker: int, n_workers: int, n_examples: int, global_batch: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Give one worker the numbers of its examples, one array for each step of an epoch.

    Over all workers each of the examples 0 to n_examples - 1 comes exactly once. The k-th arrays of all workers are,
    together, the k-th global batch: the same examples for any number of workers, one included. The order is another
    one in each epoch, and the same whenever it is asked for. All workers make the same number of steps; a worker
    without an example in a step has an empty array there.

    Args:
        worker: Which one, 0 to n_workers - 1.
        n_workers: How many there are.
        n_examples: Length of the data.
        global_batch: Examples of all workers in one step, shared evenly; the last step may have fewer.
        seed: Chosen once for the whole training; another seed, another order.
        epoch: The number of this pass over the data.

    Returns:
        One integer array for each step.
    """
    # --8<-- [start:batches]
    # Step 1: one order for all workers. Only seed and epoch decide, for nobody hears of another worker's shuffle.
    order = np.random.default_rng([seed, epoch]).permutation(n_examples)
    # Step 2: cut it into global batches, as one device would. The short last one is one too.
    steps = [order[start : start + global_batch] for start in range(0, n_examples, global_batch)]
    # Step 3: share each step out. Who gets nothing in a step still takes part in it.
    return [step[worker::n_workers] for step in steps]
    # --8<-- [end:batches]


def predict_batches() -> dict[str, int]:
    """Count for 50 examples, a global batch of 16 and 5 workers, each step shared out as the page does it.

    Return {"steps": ..., "examples_of_worker_0": ..., "empty_batches": ..., "lost_if_all_stop_at_the_first_empty": ...}
    with your numbers: steps of an epoch; examples that worker 0 sees in it; how many of all workers' batches are empty;
    and how many examples nobody would see if all stopped before the first step in which a worker has none.
    """
    from tfdistedu.course.subject import load_module

    return load_module(Path(__file__).parent / "count_batches.py").numbers(50, 16, 5)
