"""Shares are made equally long by taking some examples again."""

import numpy as np

ID = "filled_up_with_the_first"
EXERCISE = "batches_of_worker"
BELIEVES = "Shares are made equally long by taking some examples again."
TRUE = "What is taken again counts twice, in every epoch."
QUESTION = "How many examples do all shares have together?"
CAUGHT_BY = "test_each_example_comes_once_over_all_workers"
SEEN = "public report"


def batches_of_worker(worker, n_workers, n_examples, global_batch, seed, epoch):
    order = np.random.default_rng([seed, epoch]).permutation(n_examples)
    steps = [order[start : start + global_batch] for start in range(0, n_examples, global_batch)]
    return [np.resize(step, -(-len(step) // n_workers) * n_workers)[worker::n_workers] for step in steps]


def twin(worker, n_workers, n_examples, global_batch, seed, epoch):
    order, result = np.random.default_rng([seed, epoch]).permutation(n_examples), []
    for start in range(0, n_examples, global_batch):
        step = order[start : start + global_batch].tolist()
        while len(step) % n_workers:
            step.append(step[len(step) % min(global_batch, n_examples - start)])
        result.append(np.array(step[worker::n_workers]))
    return result
