"""What is written first: everybody shuffles, and takes a third."""

import numpy as np


# --8<-- [start:naive]
def naive_share(worker, n_workers, examples):
    """Shuffle, with a seed of one's own or none; then take every n-th example."""
    order = np.random.default_rng(worker).permutation(examples)
    return order[worker::n_workers]


# --8<-- [end:naive]
