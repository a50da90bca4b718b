"""What is the smallest training that shows every fault of a loop? A line through a few points, watched.

The idea: float64, SGD with momentum (Adam would hide a gradient that is n times too large), two or three replicas, and
NumPy as the judge. The loss function that the loop is given notes which examples it sees, and on which replica.

    one step, one device         -> the weights after it
    one step, two replicas       -> each example once?   then: what is the update, divided by the right one?
    two epochs, three replicas,  -> weights and mean loss, with a short last batch and a replica without examples
    ragged batches

Costs: three traced functions, about a second. Leaves out: models with state; lessons of their own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus
from tfdistedu.quiet import import_tensorflow

import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

tf.get_logger().setLevel("ERROR")  # each case traces anew, on purpose: no news for a learner

RATE, MOMENTUM = 0.125, 0.5  # exact in float32, so that Keras's learning rate is NumPy's


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

    @property
    def n_updates(self) -> int:
        """The number of updates, over all epochs."""
        return self.epochs * len(self.batches)


ONE_DEVICE = Case(1, 4, 4, 1)
TWO_REPLICAS = Case(2, 4, 4, 1)
RAGGED = Case(3, 10, 4, 2)


class Seen(NamedTuple):
    """What came out: flat `weights` of each replica, what the loop returned, who saw which example, and two things.

    `built_late` tells whether the optimizer's variables were made inside of the traced step. `calls` has, for each
    replica, how many examples each call of the loss got, and the weights that it found: those before the update.
    """

    weights: list[np.ndarray]
    losses: Any
    audit: Counter
    built_late: bool
    calls: dict[int, list[tuple[int, np.ndarray]]]


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
            _RUNS[key] = run(train, case)
        except Exception as error:
            _RUNS[key] = error
    if isinstance(_RUNS[key], Exception):
        raise _RUNS[key]
    return _RUNS[key]


def run(train: Callable[..., Any], case: Case) -> Seen:
    """Build the small world of a case, and run the loop in it.

    Args:
        train: A function of (strategy, model, optimizer, loss, dataset, epochs).
        case: What to train.

    Returns:
        What came out.

    """
    virtual_cpus(4)
    strategy = tf.distribute.get_strategy() if case.n_replicas == 1 else mirrored_strategy(case.n_replicas)
    x, y = _data(case)
    # The label carries the example's number beside it, for the audit.
    labels = np.stack([y, np.arange(case.n_examples)], axis=1)
    dataset = tf.data.Dataset.from_tensor_slices((x, labels)).batch(case.global_batch)
    audit: Counter = Counter()
    calls: dict[int, list[tuple[int, np.ndarray]]] = defaultdict(list)
    with strategy.scope():
        layer = keras.layers.Dense(1, kernel_initializer="zeros", dtype="float64")
        model = keras.Sequential([keras.layers.Input((3,), dtype="float64"), layer])
        optimizer = WatchedSGD(RATE, momentum=MOMENTUM)

    def note(replica: np.ndarray, examples: np.ndarray, *weights: np.ndarray) -> None:
        audit.update((int(replica), int(example)) for example in examples)
        calls[int(replica)].append((len(examples), np.concatenate([np.ravel(part) for part in weights])))

    def loss(y: Any, predictions: Any) -> Any:
        context = tf.distribute.get_replica_context()
        replica = -1 if context is None else context.replica_id_in_sync_group
        weights = [tf.identity(variable.value) for variable in model.trainable_variables]
        tf.numpy_function(note, [replica, y[:, 1], *weights], [])
        return tf.square(y[:, 0] - predictions[:, 0])

    losses = train(strategy, model, optimizer, loss, dataset, case.epochs)
    copies = [strategy.experimental_local_results(variable.value) for variable in model.trainable_variables]
    weights = [np.concatenate([np.ravel(part) for part in each]) for each in zip(*copies, strict=True)]
    return Seen(weights, losses, audit, optimizer.built_late, dict(calls))


def _data(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return points near a line, no two alike."""
    x = np.sin(np.arange(3 * case.n_examples, dtype=np.float64).reshape(-1, 3) + 1)
    return x, x @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * np.cos(np.arange(case.n_examples))


def expected(case: Case) -> tuple[np.ndarray, list[float], list[np.ndarray]]:
    """Train one device with NumPy alone.

    Args:
        case: What to train; the number of replicas does not matter.

    Returns:
        The flat weights, the mean loss an example of each epoch, and the weights after each update.

    """
    x, y = _data(case)
    inputs = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    weights, velocity, losses, after = np.zeros(4), np.zeros(4), [], []
    for _ in range(case.epochs):
        total = 0.0
        for batch in case.batches:
            error = inputs[batch] @ weights - y[batch]
            total += float(np.sum(error**2))
            velocity = MOMENTUM * velocity - RATE * 2 * inputs[batch].T @ error / len(batch)
            weights = weights + velocity
            after.append(weights)
        losses.append(total / case.n_examples)
    return weights, losses, after
