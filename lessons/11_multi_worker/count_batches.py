"""Count how an epoch falls on workers: python count_batches.py EXAMPLES GLOBAL_BATCH WORKERS

Prints, for each step, how many examples each worker has; then the numbers that the exercise asks for.
"""

import sys
from pathlib import Path

from tfdistedu.course.subject import load_module


def table(n_examples, global_batch, n_workers):
    """Return, for each step, the number of examples of each worker."""
    share = load_module(Path(__file__).parent / "reference.py").batches_of_worker
    workers = [share(worker, n_workers, n_examples, global_batch, 0, 0) for worker in range(n_workers)]
    return [[len(batches[step]) for batches in workers] for step in range(len(workers[0]))]


def numbers(n_examples, global_batch, n_workers):
    """Return what the exercise asks for."""
    rows = table(n_examples, global_batch, n_workers)
    first_empty = next((step for step, row in enumerate(rows) if 0 in row), len(rows))
    return {
        "steps": len(rows),
        "examples_of_worker_0": sum(row[0] for row in rows),
        "empty_batches": sum(row.count(0) for row in rows),
        "lost_if_all_stop_at_the_first_empty": sum(map(sum, rows[first_empty:])),
    }


def report(n_examples, global_batch, n_workers):
    """Write the table as one reads it."""
    lines = [f"{n_examples} examples, {global_batch} a step, {n_workers} workers"]
    for step, row in enumerate(table(n_examples, global_batch, n_workers)):
        lines.append(f"step {step}: " + "  ".join(f"worker:{worker} {size}" for worker, size in enumerate(row)))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:4]]
    print(report(*words), end="")
    for name, value in numbers(*words).items():
        print(f"{name}: {value}")
