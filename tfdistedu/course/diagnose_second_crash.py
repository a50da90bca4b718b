"""Does a training that was killed, resumed, and killed again still end as if nothing had happened?

The idea: what the *resumed* run saves is read only after a second crash. One crash never looks at it.

    start 1     saves  place 1, 2 of epoch 0      killed
    start 2     reads place 2, saves 3, 4, ...    killed: counted from the begin of the epoch, or from the resume?
    start 3     reads what start 2 saved

Costs: a few thousand trainings of a few microseconds. Leaves out: a third crash, which reads nothing new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfdistedu.course.crash_disk import Damaged, Disk, Gradients, Killed
from tfdistedu.course.diagnose_crash import EPOCHS, N_BATCHES
from tfdistedu.course.wrong import Wrong

_STRIDE = 3  # a step has five moments: with a stride of three each kind of them comes, at a third of the cost


def run_killed_twice(train: Callable[..., Any], first: int, second: int) -> tuple[Any, Disk, list[list[int]]]:
    """Run, be killed, be started again and killed again, and be started until the end.

    Args:
        train: The function under test.
        first: The moment of the first crash.
        second: The moment of the second one, counted from the restart.

    Returns:
        What it returned, or the error of a damaged file as text; the disk; and the batches of each start.

    """
    disk, runs = Disk(first), []
    for kill_next in (second, None, None):
        gradients = Gradients(disk)
        runs.append(gradients.asked)
        try:
            return train(disk, gradients, N_BATCHES, EPOCHS), disk, runs
        except Killed:
            disk.moment, disk.kill_at = 0, kill_next
        except Damaged as error:
            return f"Damaged: {error}", disk, runs
    raise AssertionError("killed more than twice")


def check_killed_again(train: Callable[..., Any], right: np.ndarray) -> None:
    """Kill a training, and kill the resumed one at every moment.

    Args:
        train: The function under test.
        right: The weights of the run that nobody killed.

    Raises:
        Wrong: The message names the moments, and which batches each start did.

    """
    whole = Disk()
    train(whole, Gradients(whole), N_BATCHES, EPOCHS)
    for first in range(0, whole.moment, _STRIDE):
        for second in range(whole.moment - first):
            came, disk, runs = run_killed_twice(train, first, second)
            if not (isinstance(came, np.ndarray) and np.array_equal(came, right)):
                raise Wrong(
                    f"killed, started again, and killed {disk.where}, it ends with other weights.",
                    called=f"train, killed at moment {first}, and {second} moments after its restart",
                    came=f"{came}; the starts did batches " + ", ".join(map(str, runs)),
                    expected=str(right),
                    why="what a resumed run saves must mean the same as what the first run saves",
                    symptom="right after one crash, wrong after two",
                )


def probe_killed_again(train: Callable[..., Any]) -> list[Any]:
    """Tell what it does when killed twice.

    Args:
        train: The function under test.

    Returns:
        The batches of each start, for some pairs of moments; or the name of the error.

    """
    found: list[Any] = []
    for first, second in ((12, 6), (12, 16), (32, 6)):
        try:
            found.append(run_killed_twice(train, first, second)[2])
        except Exception as error:  # what is wrong with it is a fingerprint too
            found.append(type(error).__name__)
    return found
