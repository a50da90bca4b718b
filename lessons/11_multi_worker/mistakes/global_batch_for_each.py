"""The global batch is what each worker takes in a step."""

import numpy as np

ID = "global_batch_for_each"
EXERCISE = "batches_of_worker"
BELIEVES = "The global batch is what each worker takes in a step."
TRUE = "A step has n times as many examples, and an epoch fewer steps than on one device."
QUESTION = "How many examples have all workers together in step 0?"
CAUGHT_BY = "test_all_workers_make_the_same_number_of_steps"
SEEN = "ours"


def batches_of_worker(worker, n_workers, n_examples, global_batch, seed, epoch):
    mine = np.random.default_rng([seed, epoch]).permutation(n_examples)[worker::n_workers]
    longest = -(-n_examples // n_workers)
    return [mine[start : start + global_batch] for start in range(0, longest, global_batch)]


def twin(worker, n_workers, n_examples, global_batch, seed, epoch):
    order, result = np.random.default_rng([seed, epoch]).permutation(n_examples), []
    for k in range(-(-n_examples // (n_workers * global_batch))):
        step = order[k * n_workers * global_batch : (k + 1) * n_workers * global_batch]
        result.append(step[worker::n_workers])
    return result
