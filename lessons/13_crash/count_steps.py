"""Count what a crash costs: python count_steps.py EPOCHS BATCHES EVERY KILLED_IN_STEP

A training saves after every EVERY steps, counted over all epochs, and is killed in step KILLED_IN_STEP (from 1).
"""

import sys


def numbers(epochs, n_batches, every, killed_in):
    """Return what the exercise asks for; it walks through the steps as the training does."""
    complete, saved = 0, 0
    for _ in range(epochs * n_batches):
        if complete + 1 == killed_in:
            break
        complete += 1
        if complete % every == 0:
            saved = complete
    return {
        "steps_before_the_crash": complete,
        "steps_done_again": complete - saved,
        "resumes_in_epoch": saved // n_batches,
        "batches_skipped": saved % n_batches,
    }


if __name__ == "__main__":
    for name, value in numbers(*map(int, sys.argv[1:5])).items():
        print(f"{name}: {value}")
