"""Your all-gather at work: four ranks train a network on handwritten digits, and your half of the ring carries it.

Each rank holds its own copy of the weights and sees a quarter of every batch. Gradients are added up by the ring: our
reduce-scatter, then yours. One rank alone, on whole batches, must end with the same weights.
"""

import numpy as np

from tfdistedu.collectives import all_reduce
from tfdistedu.collectives.algorithms import ring_reduce_scatter
from tfdistedu.data.digits import load_digits

NEEDS = ["ring_all_gather"]
N_RANKS, BATCH, EPOCHS, RATE, HIDDEN = 4, 64, 5, 0.5, 32
SHAPES = ((64, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,))
ENDS = np.cumsum([int(np.prod(shape)) for shape in SHAPES])[:-1]


def use(mine, say):
    """Train twice, and say what came out."""
    digits, trace = load_digits(), []
    schedule = ring_reduce_scatter(N_RANKS) + mine.ring_all_gather(N_RANKS)
    alone = train(digits, 1, lambda gradients: gradients)
    ranks = train(digits, N_RANKS, lambda gradients: all_reduce(gradients, algorithm=schedule, trace=trace))
    spread = max(float(np.abs(weights - ranks[0]).max()) for weights in ranks)
    distance = float(np.abs(ranks[0] - alone[0]).max())
    gathered = sum(record.n_bytes for record in trace if not record.reduce)
    say(f"{N_RANKS} ranks, {EPOCHS} epochs of real digits, gradients added by our reduce-scatter and your all-gather.")
    say(f"accuracy of rank 0 on digits it has not seen: {accuracy(ranks[0], digits):.3f}", "  ")
    say(f"accuracy of one rank alone, on whole batches: {accuracy(alone[0], digits):.3f}", "  ")
    say(f"furthest weight between two ranks: {spread:.1e}", "  ")
    say(f"furthest weight from one rank alone: {distance:.1e} (rounding in float64 explains 1e-11)", "  ")
    say(f"your function moved {gathered / 1e6:.1f} MB in {sum(not r.reduce for r in trace)} messages", "  ")
    return 0 if spread == 0 and distance < 1e-11 else 1


def train(digits, n_ranks, add_up):
    """Return every rank's weights, flat, after some epochs."""
    start = np.random.default_rng(0)
    flat = np.concatenate([(start.standard_normal(shape) * 0.1).ravel() for shape in SHAPES])
    ranks = [flat.copy() for _ in range(n_ranks)]
    for _ in range(EPOCHS):
        for first in range(0, len(digits.x_train), BATCH):
            part = [slice(first + r * BATCH // n_ranks, first + (r + 1) * BATCH // n_ranks) for r in range(n_ranks)]
            gradients = [gradient(ranks[r], digits.x_train[part[r]], digits.y_train[part[r]]) for r in range(n_ranks)]
            ranks = [weights - RATE * g for weights, g in zip(ranks, add_up(gradients), strict=True)]
    return ranks


def gradient(flat, x, y):
    """Return this rank's share of the gradient: the sum over its examples, divided by the global batch."""
    w1, b1, w2, _ = (part.reshape(shape) for part, shape in zip(np.split(flat, ENDS), SHAPES, strict=True))
    hidden = np.maximum(x @ w1 + b1, 0.0)
    error = probabilities(flat, x)
    error[np.arange(len(y)), y] -= 1.0
    error /= BATCH
    back = (error @ w2.T) * (hidden > 0)
    return np.concatenate([g.ravel() for g in (x.T @ back, back.sum(0), hidden.T @ error, error.sum(0))])


def probabilities(flat, x):
    """Return how likely each digit is, by the network with these weights."""
    w1, b1, w2, b2 = (part.reshape(shape) for part, shape in zip(np.split(flat, ENDS), SHAPES, strict=True))
    logits = np.maximum(x.astype(np.float64) @ w1 + b1, 0.0) @ w2 + b2
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def accuracy(flat, digits):
    """Return the share of test digits that are read right."""
    return float((probabilities(flat, digits.x_test).argmax(axis=1) == digits.y_test).mean())
