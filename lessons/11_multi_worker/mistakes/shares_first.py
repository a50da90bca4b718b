"""Each worker owns its part of the data and shuffles within it."""

import numpy as np

ID = "shares_first"
EXERCISE = "batches_of_worker"
BELIEVES = "Each worker owns its part of the data and shuffles within it."
TRUE = "Each example comes once, and yet no step has the examples that one device would have."
QUESTION = "Which examples can meet in one step, and which never?"
CAUGHT_BY = "test_each_step_is_a_global_batch_of_one_device"
SEEN = "ours"


def batches_of_worker(worker, n_workers, n_examples, global_batch, seed, epoch):
    own = np.arange(worker, n_examples, n_workers)
    own = np.random.default_rng([seed, epoch, worker]).permutation(own)
    n_steps = -(-n_examples // global_batch)
    ends = [min(n_examples, k * global_batch) for k in range(n_steps + 1)]
    before = [sum(1 for example in range(end) if example % n_workers == worker) for end in ends]
    return np.split(own, before[1:-1])


def twin(worker, n_workers, n_examples, global_batch, seed, epoch):
    rng = np.random.default_rng([seed, worker, epoch])
    own = [example for example in range(n_examples) if example % n_workers == worker]
    rng.shuffle(own)
    result = []
    for start in range(0, n_examples, global_batch):
        size = len(range(start, min(start + global_batch, n_examples))[(worker - start) % n_workers :: n_workers])
        result.append(np.array(own[:size], int))
        own = own[size:]
    return result
