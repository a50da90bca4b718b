"""If ones add up to n, everything adds up."""

import numpy as np

ID = "only_ones"
EXERCISE = "check_ring"
BELIEVES = "If ones add up to n, everything adds up."
TRUE = "With ones all places and all ranks look alike."
QUESTION = "Which wrong rings give n everywhere when everybody brings ones?"
CAUGHT_BY = "test_it_rejects_every_wrong_ring"
SEEN = "ours"


def check_ring(all_reduce):
    for size in (6, 7, 16, 17):
        results = all_reduce([np.ones(size) for _ in range(3)], [])
        assert all(np.array_equal(result, np.full(size, 3.0)) for result in results)


def twin(all_reduce):
    for size in (6, 7, 16, 17):
        for result in all_reduce([np.ones(size), np.ones(size), np.ones(size)], []):
            np.testing.assert_array_equal(result, 3.0)
            assert len(result) == size
