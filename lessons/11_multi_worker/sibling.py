"""A sibling of the exercise: files instead of examples."""

import numpy as np


# --8<-- [start:files]
def files_of_worker(worker, n_workers, files, seed, epoch):
    """Give one worker its files of an epoch: each file is read once, over all workers."""
    if len(files) < n_workers:
        raise ValueError(f"{len(files)} files for {n_workers} workers: some would read nothing. Share examples out.")
    order = np.random.default_rng([seed, epoch]).permutation(len(files))  # the same on all workers
    return [files[index] for index in order[worker::n_workers]]


# --8<-- [end:files]
