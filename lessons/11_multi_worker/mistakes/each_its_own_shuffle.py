"""Every worker shuffles with a seed of its own, and then takes its share."""

import numpy as np

ID = "each_its_own_shuffle"
EXERCISE = "batches_of_worker"
BELIEVES = "Every worker shuffles with a seed of its own, and then takes its share."
TRUE = "Shares of different orders overlap: some examples come twice, others never."
QUESTION = "Does worker 2 know in which order worker 0 put the examples?"
CAUGHT_BY = "test_each_example_comes_once_over_all_workers"
SEEN = "public report"


def batches_of_worker(worker, n_workers, n_examples, global_batch, seed, epoch):
    order = np.random.default_rng([seed, epoch, worker]).permutation(n_examples)
    steps = [order[start : start + global_batch] for start in range(0, n_examples, global_batch)]
    return [step[worker::n_workers] for step in steps]


def twin(worker, n_workers, n_examples, global_batch, seed, epoch):
    mixed = np.random.default_rng((seed, epoch, worker)).permutation(np.arange(n_examples))
    result, at = [], 0
    while at < n_examples:
        result.append(mixed[at : min(at + global_batch, n_examples)][worker::n_workers])
        at += global_batch
    return result
