"""A batch without examples is no batch, so it can be left out."""

import numpy as np

ID = "leaves_out_empty_batches"
EXERCISE = "batches_of_worker"
BELIEVES = "A batch without examples is no batch, so it can be left out."
TRUE = "A worker with fewer batches leaves, and the others wait for it in the next sum."
QUESTION = "How many batches does the last worker have, and how many the first?"
CAUGHT_BY = "test_all_workers_make_the_same_number_of_steps"
SEEN = "ours"


def batches_of_worker(worker, n_workers, n_examples, global_batch, seed, epoch):
    order = np.random.default_rng([seed, epoch]).permutation(n_examples)
    steps = [order[start : start + global_batch] for start in range(0, n_examples, global_batch)]
    return [step[worker::n_workers] for step in steps if len(step) > worker]


def twin(worker, n_workers, n_examples, global_batch, seed, epoch):
    order, result = np.random.default_rng([seed, epoch]).permutation(n_examples), []
    for start in range(0, n_examples, global_batch):
        mine = order[start : start + global_batch][worker::n_workers]
        if mine.size:
            result.append(mine)
    return result
