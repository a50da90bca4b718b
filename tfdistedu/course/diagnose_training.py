"""Where does a training loop first differ from one device? Who saw which example, then the weights, then the loss.

The idea: train the smallest thing that can go wrong (`tfdistedu.course.small_training`), and look in the order in which
one thing leads to another.

    who saw what      example 0 is seen 2 times, by replica 0 and by replica 1
    the weights       after which batch; the update is 2 times too large, and there are 2 replicas
    the losses        not the mean over all examples

Costs: nothing beside the runs, which are kept. Leaves out: the name of a mistake; fingerprints find that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfdistedu.course.small_training import ONE_DEVICE, RAGGED, TWO_REPLICAS, Case, Seen, expected, observe
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
        Wrong: The message names the first batch, replica and weight that differ, and what the update looks like.

    """
    for step, sizes, replicas, right in _updates(observe(train, case), case):
        for replica, weights in enumerate(replicas):
            wrong = ~(np.abs(weights - right) < TOLERANCE)
            if wrong.any():
                index = int(np.argmax(wrong))
                epoch, batch = divmod(step, len(case.batches))
                when = f"after batch {batch} of epoch {epoch}, " if sizes and case.n_updates > 1 else ""
                parts = f"; the replicas got {sizes} of its examples" if when and case.n_replicas > 1 else ""
                raise Wrong(
                    f"{case}: {when}weight {index} of replica {replica} is not one device's.",
                    called=f"train on {case}",
                    came=f"{weights[index]:.9g}{parts}",
                    expected=f"{right[index]:.9g}",
                    why="the gradients of all replicas, added up, are one device's gradient",
                    symptom=_looks_like(replicas, right, sizes, first=step == 0),
                )


def _updates(seen: Seen, case: Case) -> Iterator[tuple[int, list[int], list[np.ndarray], np.ndarray]]:
    """Give each update: its number, the replicas' numbers of examples, their weights after it, and one device's.

    A loop that calls the loss more or less than once a batch shows the last one only, without numbers of examples.
    """
    after, ranks = expected(case)[2], range(case.n_replicas)
    watched = all(len(seen.calls.get(replica, ())) == case.n_updates for replica in ranks)
    for step in range(case.n_updates - 1) if watched else ():
        sizes = [seen.calls[replica][step][0] for replica in ranks]
        yield step, sizes, [seen.calls[replica][step + 1][1] for replica in ranks], after[step]
    sizes = [seen.calls[replica][-1][0] for replica in ranks] if watched else []
    yield case.n_updates - 1, sizes, seen.weights, after[-1]


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


def _looks_like(weights: list[np.ndarray], right: np.ndarray, sizes: list[int], first: bool) -> str:
    """Say what the whole looks like."""
    if any(np.abs(each - weights[0]).max() > TOLERANCE for each in weights):
        return "replicas hold different weights"
    if np.isnan(weights[0]).any():
        return "not a number: somewhere nothing was divided by nothing"
    ratios = weights[0] / right
    if not first or np.ptp(ratios) > TOLERANCE:
        return ""
    # After one update from zero the weights are the update.
    busy, ratio = sum(size > 0 for size in sizes), float(ratios[0])
    if 0 < busy < len(weights) and abs(ratio * len(weights) - busy) < 1e-6:
        n = len(weights)
        return f"the update is {busy}/{n} of what it should be, and {busy} of {n} replicas got examples"
    return _times(ratio, len(weights), "the update is ")


def _times(ratio: float, n: int, what: str = "") -> str:
    """Recognise n times and 1/n."""
    if n > 1 and abs(ratio - n) < 1e-6:
        return f"{what}{n} times too large, and there are {n} replicas"
    if n > 1 and abs(ratio * n - 1) < 1e-6:
        return f"{what}1/{n} of what it should be, and there are {n} replicas"
    return ""
