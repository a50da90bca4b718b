"""Our answers to the exercises of this lesson. Try yours first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfdistedu.links.meeting import Group


def predict_hang() -> dict[str, int]:
    """Read the second stacks of the page (it is `page.md` in this folder), and say who waits for whom.

    Three workers ran `job.py`, five steps each. worker:0 evaluates after step 1, worker:2 after steps 0 and 2, and
    worker:1 never.

    Return {"workers_that_wait": ..., "waits_for_worker": ..., "all_reduces_that_ended": ..., "first_wrong_meeting":
    ...} with your numbers: how many wait; the worker that all of them wait for; how many all-reduces ended on all
    three; and the number, from 0, of the first all-reduce in which the three meant different things.
    """
    from tfdistedu.course.subject import load_module

    watch = load_module(Path(__file__).parent / "watch_hang.py")
    return watch.numbers(**watch.EXERCISE)


# --8<-- [start:train]
def train(group: Group, batches: Sequence[np.ndarray]) -> tuple[float, list[float], float]:
    """Fit one weight to numbers, on all workers: the result is one device's on the joined batches."""
    weight, losses, mine = 0.0, [], iter(batches)
    while True:
        batch = next(mine, None)
        # Step 1: agree on going on. Who has no batch joins with nothing, until nobody has one.
        if group.all_reduce("has a batch", batch is not None) == 0:
            break
        error = weight - (np.zeros(0) if batch is None else batch)
        # Step 2: the same calls on all, in one order. Who uses the result is another question.
        gradient = group.all_reduce("gradient", error.sum())
        loss = group.all_reduce("loss", (error**2).sum())
        count = group.all_reduce("count", error.size)
        weight -= 0.5 * gradient / count
        losses.append(loss / count)
    # Step 3: all call, at the end too. One may print.
    examples = group.all_reduce("examples", sum(batch.size for batch in batches))
    return weight, losses, examples


# --8<-- [end:train]
