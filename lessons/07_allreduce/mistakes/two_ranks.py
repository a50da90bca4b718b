"""What works with two ranks works with n."""

import numpy as np

ID = "two_ranks"
EXERCISE = "check_ring"
BELIEVES = "What works with two ranks works with n."
TRUE = "With two ranks left is right, and one round is all rounds."
QUESTION = "What is the left neighbour of rank 0 when there are two ranks?"
CAUGHT_BY = "test_it_rejects_every_wrong_ring"
SEEN = "ours"


def check_ring(all_reduce):
    arrays = [np.arange(10.0), 100.0 + np.arange(10.0)]
    for result in all_reduce([array.copy() for array in arrays], []):
        assert np.array_equal(result, arrays[0] + arrays[1])


def twin(all_reduce):
    first, second = np.arange(10.0), np.arange(100.0, 110.0)
    results = all_reduce([first, second], [])
    want = [100.0 + 2 * index for index in range(10)]
    assert [list(result) for result in results] == [want, want]
