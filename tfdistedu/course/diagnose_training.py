"""Where does a training loop first differ from one device? Who saw which example, then the weights, then the loss.

The idea: train the smallest thing that can go wrong (`tfdistedu.course.small_training`), and look in the order in which
one thing leads to another.

    who saw what      example 0 is seen 2 times, by replica 0 and by replica 1
    the weights       the update is 2 times too large, and there are 2 replicas
    the losses        not the mean over all examples

Costs: nothing beside the runs, which are kept. Leaves out: the name of a mistake; fingerprints find that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfdistedu.course.small_training import ONE_DEVICE, RAGGED, TWO_REPLICAS, Case, expected, observe
from tfdistedu.course.wrong import Wrong

TOLERANCE = 1e-9  # some hundred float64 roundings of numbers near 1; the smallest mistake here is 1e-3


def check_examples(train: Callable[..., Any], case: Case) -> None:
    """Check that every example was seen once an epoch, over all replicas.

    Args:
        train: The loop.
        case: What to train.

    Raises:
        Wrong: The message names the first example, and who saw it.

    """
    audit = observe(train, case).audit
    for example in range(case.n_examples):
        who = {replica: count for (replica, seen), count in sorted(audit.items()) if seen == example}
        if sum(who.values()) != case.epochs:
            by = ", ".join(f"replica {replica} {count}x" for replica, count in who.items()) or "nobody"
            everywhere = len(who) == case.n_replicas > 1
            raise Wrong(
                f"{case}: example {example} is seen {sum(who.values())} times.",
                called=f"train on {case}",
                came=f"example {example}: {by}",
                expected=f"{case.epochs} time(s), by one replica",
                why="a global batch is split between the replicas; they share the work, and do not repeat it",
                symptom="every replica trains on the same examples" if everywhere else "",
            )


def check_weights(train: Callable[..., Any], case: Case) -> None:
    """Check that all replicas end with the weights of one device.

    Args:
        train: The loop.
        case: What to train.

    Raises:
        Wrong: The message names the first weight and replica that differ, and what the update looks like.

    """
    seen, right = observe(train, case), expected(case)[0]
    for replica, weights in enumerate(seen.weights):
        wrong = ~(np.abs(weights - right) < TOLERANCE)
        if wrong.any():
            index = int(np.argmax(wrong))
            raise Wrong(
                f"{case}: weight {index} of replica {replica} is not one device's.",
                called=f"train on {case}",
                came=f"{weights[index]:.9g}",
                expected=f"{right[index]:.9g}",
                why="the gradients of all replicas, added up, are one device's gradient",
                symptom=_looks_like(seen.weights, right, case),
            )


def check_losses(train: Callable[..., Any], case: Case) -> None:
    """Check that the loop returns the mean loss an example, for every epoch.

    Args:
        train: The loop.
        case: What to train.

    Raises:
        Wrong: The message names the first epoch that differs.

    """
    losses, right = observe(train, case).losses, expected(case)[1]
    try:
        given = [float(loss) for loss in losses]
    except TypeError:
        given = []
    if len(given) != case.epochs:
        raise Wrong(
            f"{case}: train returns {len(given)} losses.",
            came=repr(losses)[:200],
            expected=f"a list with one number an epoch: {case.epochs}",
        )
    for epoch, (mine, theirs) in enumerate(zip(given, right, strict=True)):
        if not abs(mine - theirs) < TOLERANCE:
            raise Wrong(
                f"{case}: the loss of epoch {epoch} is not the mean over its {case.n_examples} examples.",
                called=f"train on {case}",
                came=f"{mine:.9g}",
                expected=f"{theirs:.9g}",
                why="every example weighs the same, so a short last batch weighs less than a full one",
                symptom=_times(mine / theirs, case.n_replicas),
            )


def check_built(train: Callable[..., Any], case: Case) -> None:
    """Check that the optimizer's variables are made before the first step.

    Args:
        train: The loop.
        case: What to train.

    Raises:
        Wrong: They are made inside of the traced step.

    """
    if observe(train, case).built_late:
        raise Wrong(
            f"{case}: the optimizer makes its variables inside of the first step.",
            called=f"train on {case}",
            came="it was built while the step was traced",
            expected="optimizer.build(model.trainable_variables) in the strategy's scope, before the first step",
            why="here it went well; with TensorFlow's default all-reduce the same loop dies in its first step: "
            "'You must feed a value for placeholder tensor'",
        )


def probe(train: Callable[..., Any]) -> list[Any]:
    """Return what a loop does, for its fingerprint.

    Args:
        train: The loop.

    Returns:
        For each case: weights and losses to six digits, and how often each example was seen; or what it raised.

    """
    found = []
    for case in (ONE_DEVICE, TWO_REPLICAS, RAGGED):
        try:
            seen = observe(train, case)
            losses = [_digits(loss) for loss in seen.losses]
            found.append(
                [
                    [[_digits(w) for w in each] for each in seen.weights],
                    losses,
                    sorted(seen.audit.items()),
                    seen.built_late,
                ]
            )
        except Exception as error:
            found.append(f"raises {type(error).__name__}")
    return found


def _digits(value: Any) -> str:
    """Write a number so that rounding on another machine does not show."""
    return f"{float(value):.6g}"


def _looks_like(weights: list[np.ndarray], right: np.ndarray, case: Case) -> str:
    """Say what the whole looks like."""
    if any(np.abs(each - weights[0]).max() > TOLERANCE for each in weights):
        return "replicas hold different weights"
    if np.isnan(weights[0]).any():
        return "not a number: somewhere nothing was divided by nothing"
    if len(case.batches) == case.epochs == 1:  # after one step the weights are the update
        ratios = weights[0] / right
        if np.ptp(ratios) < TOLERANCE:
            return _times(float(ratios[0]), case.n_replicas, "the update is ")
    return ""


def _times(ratio: float, n: int, what: str = "") -> str:
    """Recognise n times and 1/n."""
    if n > 1 and abs(ratio - n) < 1e-6:
        return f"{what}{n} times too large, and there are {n} replicas"
    if n > 1 and abs(ratio * n - 1) < 1e-6:
        return f"{what}1/{n} of what it should be, and there are {n} replicas"
    return ""
