"""Your function at work: three real workers train on the digits by your batches, and end with one device's weights."""

from pathlib import Path

import numpy as np

from tfdistedu.cluster.local import LocalCluster
from tfdistedu.course.subject import load_module
from tfdistedu.data.digits import load_digits

NEEDS = ["batches_of_worker"]
N_WORKERS, GLOBAL_BATCH, EPOCHS, SEED = 3, 60, 2, 7  # 60 does not divide 1,408: the last step has 28 examples
DEADLINE = 90.0
TOLERANCE = 1e-4  # float32, some fifty steps of rounding; a mistake is 1e-2 and more


def use(mine, say):
    """Train on three workers and on one device, and compare."""
    training = load_module(Path(__file__).parent / "training.py")
    n_examples = len(load_digits().y_train)
    shares = [
        [mine.batches_of_worker(w, N_WORKERS, n_examples, GLOBAL_BATCH, SEED, epoch) for epoch in range(EPOCHS)]
        for w in range(N_WORKERS)
    ]
    alone = [mine.batches_of_worker(0, 1, n_examples, GLOBAL_BATCH, SEED, epoch) for epoch in range(EPOCHS)]
    say(f"{N_WORKERS} workers read {n_examples} digits by your batches, {EPOCHS} epochs.")
    with LocalCluster(workers=N_WORKERS, deadline=DEADLINE, echo=False) as cluster:
        results = cluster.run(training.work, shares)
    with LocalCluster(workers=1, deadline=DEADLINE, echo=False) as cluster:
        (one,) = cluster.run(training.work_alone, alone).values()
    for task, (_, examples, accuracy) in results.items():
        say(f"{task}: {examples} examples of all workers, accuracy {accuracy:.3f}", "  ")
    say(f"one device: {one[1]} examples, accuracy {one[2]:.3f}", "  ")
    gaps = [np.abs(a - b).max() for each in results.values() for a, b in zip(each[0], one[0], strict=True)]
    say(f"furthest weight: {max(gaps):.1e} (rounding in float32 explains {TOLERANCE:.0e})", "  ")
    whole = all(examples == EPOCHS * n_examples for _, examples, _ in results.values())
    return 0 if whole and max(gaps) < TOLERANCE else 1
