"""Where does a training loop first differ from one device? Who saw which example, then the weights, then the loss.

The idea: train the smallest thing that can go wrong, a line through a few points, in float64 with SGD and momentum
(Adam would hide a gradient that is n times too large), and hold it against NumPy. The loss function that the loop is
given notes which examples it sees, and on which replica.

    one step, one device         -> the weights after it
    one step, two replicas       -> each example once?   then: what is the update, divided by the right one?
    two epochs, three replicas,  -> weights and mean loss, with a short last batch and a replica without examples
    ragged batches

Costs: three traced functions, about two seconds. Leaves out: models with state; lessons of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tfdistedu.course.wrong import Wrong
from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus
from tfdistedu.quiet import import_tensorflow

import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

tf.get_logger().setLevel("ERROR")  # each case traces anew, on purpose: no news for a learner

RATE, MOMENTUM = 0.125, 0.5  # exact in float32, so that Keras's learning rate is NumPy's
TOLERANCE = 1e-9  # some hundred float64 roundings of numbers near 1; the smallest mistake here is 1e-3


class Case(NamedTuple):
    """What is trained: examples in global batches, for some epochs, on some replicas."""

    n_replicas: int
    n_examples: int
    global_batch: int
    epochs: int

    def __str__(self) -> str:
        """Write it as in a sentence."""
        where = "one device" if self.n_replicas == 1 else f"{self.n_replicas} replicas"
        return f"{where}, {self.n_examples} examples in batches of {self.global_batch}, {self.epochs} epoch(s)"

    @property
    def batches(self) -> list[range]:
        """The examples of each global batch of one epoch."""
        starts = range(0, self.n_examples, self.global_batch)
        return [range(first, min(first + self.global_batch, self.n_examples)) for first in starts]


ONE_DEVICE = Case(1, 4, 4, 1)
TWO_REPLICAS = Case(2, 4, 4, 1)
RAGGED = Case(3, 10, 4, 2)


class Seen(NamedTuple):
    """What came out: flat `weights` of each replica, what the loop returned, who saw which example, and one place more.

    `built_late` tells whether the optimizer's variables were made inside of the traced step.
    """

    weights: list[np.ndarray]
    losses: Any
    audit: Counter
    built_late: bool


class WatchedSGD(keras.optimizers.SGD):
    """SGD that notes where it is built."""

    built_late = False

    def build(self, variables: Any) -> None:
        """Note, and build."""
        self.built_late = bool(tf.inside_function())
        super().build(variables)


_RUNS: dict[tuple[Any, Case], Seen | Exception] = {}


def observe(train: Callable[..., Any], case: Case) -> Seen:
    """Run a loop, once for each case.

    Args:
        train: A function of (strategy, model, optimizer, loss, dataset, epochs).
        case: What to train.

    Returns:
        What came out.

    Raises:
        Exception: What the loop raised.

    """
    key = train, case
    if key not in _RUNS:
        try:
            _RUNS[key] = _run(train, case)
        except Exception as error:
            _RUNS[key] = error
    if isinstance(_RUNS[key], Exception):
        raise _RUNS[key]
    return _RUNS[key]


def _run(train: Callable[..., Any], case: Case) -> Seen:
    """Build the small world of a case, and run the loop in it."""
    virtual_cpus(4)
    strategy = tf.distribute.get_strategy() if case.n_replicas == 1 else mirrored_strategy(case.n_replicas)
    x, y = _data(case)
    # The label carries the example's number beside it, for the audit.
    labels = np.stack([y, np.arange(case.n_examples)], axis=1)
    dataset = tf.data.Dataset.from_tensor_slices((x, labels)).batch(case.global_batch)
    audit: Counter = Counter()
    with strategy.scope():
        layer = keras.layers.Dense(1, kernel_initializer="zeros", dtype="float64")
        model = keras.Sequential([keras.layers.Input((3,), dtype="float64"), layer])
        optimizer = WatchedSGD(RATE, momentum=MOMENTUM)

    def note(replica: np.ndarray, examples: np.ndarray) -> None:
        audit.update((int(replica), int(example)) for example in examples)

    def loss(y: Any, predictions: Any) -> Any:
        context = tf.distribute.get_replica_context()
        replica = -1 if context is None else context.replica_id_in_sync_group
        tf.numpy_function(note, [replica, y[:, 1]], [])
        return tf.square(y[:, 0] - predictions[:, 0])

    losses = train(strategy, model, optimizer, loss, dataset, case.epochs)
    copies = [strategy.experimental_local_results(variable.value) for variable in model.trainable_variables]
    weights = [np.concatenate([np.ravel(part) for part in each]) for each in zip(*copies, strict=True)]
    return Seen(weights, losses, audit, optimizer.built_late)


def _data(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return points near a line, no two alike."""
    x = np.sin(np.arange(3 * case.n_examples, dtype=np.float64).reshape(-1, 3) + 1)
    return x, x @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * np.cos(np.arange(case.n_examples))


def expected(case: Case) -> tuple[np.ndarray, list[float]]:
    """Train one device with NumPy alone.

    Args:
        case: What to train; the number of replicas does not matter.

    Returns:
        The flat weights, and the mean loss an example of each epoch.

    """
    x, y = _data(case)
    inputs = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    weights, velocity, losses = np.zeros(4), np.zeros(4), []
    for _ in range(case.epochs):
        total = 0.0
        for batch in case.batches:
            error = inputs[batch] @ weights - y[batch]
            total += float(np.sum(error**2))
            velocity = MOMENTUM * velocity - RATE * 2 * inputs[batch].T @ error / len(batch)
            weights = weights + velocity
        losses.append(total / case.n_examples)
    return weights, losses


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
