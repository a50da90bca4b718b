"""If the values are right, it is a ring."""

import numpy as np

ID = "values_only"
EXERCISE = "check_ring"
BELIEVES = "If the values are right, it is a ring."
TRUE = "Right values come from many algorithms, and some also change their inputs."
QUESTION = "Which of your asserts would fail if one rank added everything for all?"
CAUGHT_BY = "test_it_rejects_every_wrong_ring"
SEEN = "ours"


def check_ring(all_reduce):
    for n in range(1, 6):
        for size in (0, 1, n - 1, n, 2 * n + 1):
            arrays = [2.0**25 + 1 + rank + np.arange(size) for rank in range(n)]
            results = all_reduce([array.copy() for array in arrays], [])
            assert [np.array_equal(result, sum(arrays)) for result in results] == [True] * n


def twin(all_reduce):
    for size in range(12):
        for n in (1, 2, 3, 4, 5):
            arrays = np.add.outer(2.0**26 + 3 + np.arange(n), np.arange(size))
            for result in all_reduce(list(arrays.copy()), []):
                assert result.tolist() == arrays.sum(axis=0).tolist()
