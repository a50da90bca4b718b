"""A short last batch is no batch."""

import numpy as np

ID = "drops_the_remainder"
EXERCISE = "batches_of_worker"
BELIEVES = "A short last batch is no batch."
TRUE = "The examples of the last step are lost in every epoch."
QUESTION = "Who sees the examples that are left after the last full batch?"
CAUGHT_BY = "test_all_workers_make_the_same_number_of_steps"
SEEN = "public report"


def batches_of_worker(worker, n_workers, n_examples, global_batch, seed, epoch):
    order = np.random.default_rng([seed, epoch]).permutation(n_examples)
    steps = [order[k * global_batch : (k + 1) * global_batch] for k in range(n_examples // global_batch)]
    return [step[worker::n_workers] for step in steps]


def twin(worker, n_workers, n_examples, global_batch, seed, epoch):
    order = np.random.default_rng([seed, epoch]).permutation(n_examples)
    whole = order[: n_examples - n_examples % global_batch].reshape(-1, global_batch)
    return [row[worker::n_workers] for row in whole]
