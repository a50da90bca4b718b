"""All ranks end alike, so one is enough."""

import numpy as np

ID = "rank_0_only"
EXERCISE = "check_ring"
BELIEVES = "All ranks end alike, so one is enough."
TRUE = "That all end alike is what has to be shown."
QUESTION = "What do you know of rank 3?"
CAUGHT_BY = "test_it_rejects_every_wrong_ring"
SEEN = "ours"


def check_ring(all_reduce):
    arrays = [np.arange(16.0) * (rank + 1) + 100.0 * rank for rank in range(4)]
    assert np.array_equal(all_reduce([array.copy() for array in arrays], [])[0], sum(arrays))


def twin(all_reduce):
    arrays = [np.linspace(100.0 * rank, 100.0 * rank + 15.0 * (rank + 1), 16) for rank in range(4)]
    first, *_ = all_reduce([array.copy() for array in arrays], [])
    assert np.allclose(first, np.sum(arrays, axis=0), rtol=1e-12, atol=0)
