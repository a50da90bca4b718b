"""At which moment of a training may one kill it, so that it does not end as if nothing had happened?

The idea: kill it at *every* moment, one run after the other, on a disk that tells each of them.

    moments     a gradient is asked for · a write begins · it is half done · it is done · a rename is done
    a run       killed at moment k, started again until it ends
    right       the weights of the run that nobody killed, bit for bit

Costs: some hundred trainings of a few microseconds. Leaves out: a second crash (`diagnose_second_crash`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tfdistedu.course.crash_disk import MOMENTUM, RATE, SEED, Damaged, Disk, Gradients, Killed
from tfdistedu.course.wrong import Wrong

N_BATCHES, EPOCHS = 4, 3
_MOST_STARTS = 3


def undisturbed() -> np.ndarray:
    """Train without a disk and without a crash.

    Returns:
        The weights at the end.

    """
    weight, velocity, gradient_of = np.zeros(2), np.zeros(2), Gradients(Disk())
    for epoch in range(EPOCHS):
        for batch in np.random.default_rng([SEED, epoch]).permutation(N_BATCHES):
            velocity = MOMENTUM * velocity - RATE * gradient_of(weight, batch)
            weight = weight + velocity
    return weight


def run_killed(train: Callable[..., Any], kill_at: int | None) -> tuple[Any, Disk, list[list[int]]]:
    """Run, be killed once, and be started again until the end.

    Args:
        train: The function under test.
        kill_at: The moment; `None`: never.

    Returns:
        What it returned, the disk, and the batches of each run.

    """
    disk, runs = Disk(kill_at), []
    for _ in range(_MOST_STARTS):
        gradients = Gradients(disk)
        runs.append(gradients.asked)
        try:
            return train(disk, gradients, N_BATCHES, EPOCHS), disk, runs
        except Killed:
            continue
    raise AssertionError("killed more than once")


def check_undisturbed(train: Callable[..., Any], right: np.ndarray) -> None:
    """Check the run that nobody kills.

    Args:
        train: The function under test.
        right: The weights that it should end with.

    Raises:
        Wrong: They are others.

    """
    came, _, (batches,) = run_killed(train, None)
    if not _same(came, right):
        raise Wrong(
            "without any crash the weights are not those of the training.",
            called=f"train(disk, gradient_of, {N_BATCHES}, {EPOCHS})",
            came=_text(came),
            expected=f"{_text(right)} after {N_BATCHES * EPOCHS} steps; yours made {len(batches)}",
            why="checkpoints must not change the training",
        )


def check_every_moment(train: Callable[..., Any], right: np.ndarray) -> None:
    """Kill it at every moment, and check how it ends.

    Args:
        train: The function under test.
        right: The weights of the run that nobody killed.

    Raises:
        Wrong: The message names the first moment, and what the restarted run did.

    """
    _, disk, _ = run_killed(train, None)
    for kill_at in range(disk.moment):
        try:
            came, killed, runs = run_killed(train, kill_at)
        except Damaged as error:
            again = Disk(kill_at)
            with contextlib.suppress(Killed):
                train(again, Gradients(again), N_BATCHES, EPOCHS)
            raise Wrong(
                f"killed {again.where}, it cannot start again: {error}.",
                called=f"train, killed at moment {kill_at}, and started again",
                came=f"Damaged: {error}",
                expected="a checkpoint that is whole, this one or the one before",
                why="a write can be cut short; a rename cannot",
                symptom="the only checkpoint is half written",
            ) from None
        if not _same(came, right):
            first, second = runs[0], runs[-1]
            done = len(first) + len(second)
            symptom = (
                "batches are left out" if done < N_BATCHES * EPOCHS
                else "it begins the epoch anew" if len(second) > N_BATCHES * EPOCHS - len(first) + 1
                else "the right batches, from something that was not saved"
            )  # fmt: skip
            raise Wrong(
                f"killed {killed.where}, it ends with other weights.",
                called=f"train, killed at moment {kill_at}, and started again",
                came=f"{_text(came)}; first run: batches {first}, second run: {second}",
                expected=_text(right),
                why="what was saved and what is done again must be, together, the training that nobody killed",
                symptom=symptom,
            )


def check_little_is_done_again(train: Callable[..., Any]) -> None:
    """Check that a restart does not begin far before the crash.

    Args:
        train: The function under test.

    Raises:
        Wrong: More than one step is done twice.

    """
    _, disk, _ = run_killed(train, None)
    for kill_at in range(disk.moment):
        _, killed, runs = run_killed(train, kill_at)
        again = sum(map(len, runs)) - N_BATCHES * EPOCHS
        if again > 1:
            raise Wrong(
                f"killed {killed.where}, {again} steps are done again.",
                called=f"train, killed at moment {kill_at}, and started again",
                came=f"first run: batches {runs[0]}, second run: {runs[-1]}",
                expected="at most the one step that was not saved yet",
                why="here each step is saved; who does not use that pays for it at every crash",
            )


def probe_crash(train: Callable[..., Any]) -> list[Any]:
    """Tell what it does when killed at some moments.

    Args:
        train: The function under test.

    Returns:
        Weights and batches of each run, rounded; or the name of the error.

    """
    found: list[Any] = []
    for kill_at in (None, *range(0, 60, 3)):
        try:
            came, _, runs = run_killed(train, kill_at)
            found.append([np.round(np.asarray(came, float), 6).tolist(), runs])
        except Exception as error:  # what is wrong with it is a fingerprint too
            found.append(type(error).__name__)
    return found


def _same(came: Any, right: np.ndarray) -> bool:
    try:
        return np.asarray(came, float).tobytes() == right.tobytes()
    except (TypeError, ValueError):
        return False


def _text(value: Any) -> str:
    try:
        return str([float(f"{each:.6g}") for each in np.asarray(value, float).reshape(-1)])
    except (TypeError, ValueError):
        return repr(value)[:80]
