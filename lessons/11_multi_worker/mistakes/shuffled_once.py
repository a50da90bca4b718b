"""The seed makes the order, so the epoch has no say in it."""

import numpy as np

ID = "shuffled_once"
EXERCISE = "batches_of_worker"
BELIEVES = "The seed makes the order, so the epoch has no say in it."
TRUE = "Each epoch has the same batches, and what happens to stand together is learned together."
QUESTION = "In what do epoch 0 and epoch 1 differ?"
CAUGHT_BY = "test_each_epoch_has_another_order_and_always_the_same"
SEEN = "ours"


def batches_of_worker(worker, n_workers, n_examples, global_batch, seed, epoch):
    order = np.random.default_rng(seed).permutation(n_examples)
    steps = [order[start : start + global_batch] for start in range(0, n_examples, global_batch)]
    return [step[worker::n_workers] for step in steps]


def twin(worker, n_workers, n_examples, global_batch, seed, epoch):
    order = np.arange(n_examples)
    np.random.default_rng(seed + 1).shuffle(order)
    cuts = range(global_batch, n_examples, global_batch)
    return [part[worker::n_workers] for part in np.split(order, cuts)]
