"""Do one device and four replicas train the same network, and which popular way does not?

The same 4,810 weights, the same digits in the same order, SGD with momentum, batches of 64 that divide evenly by four:
so every way that promises equality must end with one device's weights, up to float32 rounding.

    way                      replicas   accuracy   furthest weight from one device
    one device, fit              1                  0, the reference
    mirrored, fit                4                  below 1e-5, or the demo ends with status 1
    mirrored, custom loop        4                  the same
    two workers, fit             2 processes        the same
    two workers, custom loop     2 processes        the same
    two ranks, our all-reduce    2 processes        the same
    widely copied loop           4                  not the same: shown, and why

A way is one entry in `WAYS`: a function from a `Run` to the trained model and its losses. Later ways of training add
theirs. Batches divide evenly because Keras `fit` weighs a ragged last batch otherwise; our loop would not mind.

Cost: a minute on two cores. Left out: speed-ups. Virtual devices share the cores and cannot be faster.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tfdistedu.bench import on_workers, widely_copied
from tfdistedu.data.batches import batched_dataset
from tfdistedu.data.digits import load_digits
from tfdistedu.devices import mirrored_strategy
from tfdistedu.models import digits_mlp
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step import optimizer as optimizers
from tfdistedu.step import replica
from tfdistedu.synchronous import loop

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

N_REPLICAS = 4
GLOBAL_BATCH = 64
EPOCHS = 10
TOLERANCE = 1e-5  # float32 weights of order 1, 220 steps: rounding alone moves them by some 5e-7


@dataclass(frozen=True)
class Row:
    """What one way of training gave.

    `accuracy` on the 389 test digits, `loss` the mean over the last epoch, `max_weight_difference` the furthest
    weight from one device (`None` for a way that promises no equality), `examples_per_s` after the first epoch (which
    traces), `seconds` of training in all.
    """

    way: str
    replicas: int
    accuracy: float
    loss: float
    max_weight_difference: float | None
    examples_per_s: float
    seconds: float


@dataclass(frozen=True)
class Result:
    """All rows, the ways that are wrong on purpose with their reasons, each way's loss curve, and what failed."""

    rows: list[Row]
    counterexamples: list[tuple[Row, str]]
    losses: dict[str, list[float]]
    failures: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return the rows and counterexamples as plain data.

        Returns:
            `{"rows": [...], "counterexamples": [...]}`.

        """
        wrong = [{**asdict(row), "reason": reason} for row, reason in self.counterexamples]
        return {"rows": [asdict(row) for row in self.rows], "counterexamples": wrong}


@dataclass(frozen=True)
class Way:
    """A way of training: its name, its number of replicas, `train(run)` -> (model, losses), and what it promises."""

    name: str
    n_replicas: int
    train: Callable[[Run], tuple[Any, list[float]]]
    equals_one_device: bool = True
    wrong_because: str | None = None


class Run:
    """What a way gets: a strategy, fresh weights, the data, and a clock that is told of each epoch."""

    def __init__(self, n_replicas: int, on_epoch: Callable[[], None]):
        self.n_replicas, self.epochs, self.global_batch = n_replicas, EPOCHS, GLOBAL_BATCH
        self.digits = load_digits()
        self.dataset = batched_dataset((self.digits.x_train, self.digits.y_train), GLOBAL_BATCH, shuffle_seed=0)
        self._on_epoch = on_epoch
        self.times = [time.perf_counter()]

    @functools.cached_property
    def strategy(self) -> tf.distribute.Strategy:
        """The strategy of this process; a way that trains in others does not ask for it."""
        return tf.distribute.get_strategy() if self.n_replicas == 1 else mirrored_strategy(self.n_replicas)

    def model_and_optimizer(self) -> tuple[Any, Any]:
        """Make the model and the optimizer in the strategy's scope; the same first weights every time.

        Returns:
            A Keras model and an optimizer.

        """
        with self.strategy.scope():
            return digits_mlp(), optimizers.SGD(0.1, momentum=0.9)

    def epoch_done(self) -> None:
        """Note that an epoch ended."""
        self.times.append(time.perf_counter())
        self._on_epoch()

    def row(self, way: Way, model: Any, losses: list[float], reference: Any) -> Row:
        """Measure the trained model.

        Args:
            way: How it was trained.
            model: The trained model.
            losses: One mean loss an epoch.
            reference: One device's weights, or `None` for the row that is the reference.

        Returns:
            The row.

        """
        predicted = np.argmax(np.asarray(model(self.digits.x_test, training=False)), axis=1)
        distance = None
        if way.equals_one_device or way.wrong_because:
            distance = furthest(model.get_weights(), reference or model.get_weights())
        steady = np.median(np.diff(self.times)[1:])
        return Row(
            way=way.name,
            replicas=way.n_replicas,
            accuracy=float(np.mean(predicted == self.digits.y_test)),
            loss=float(losses[-1]),
            max_weight_difference=distance,
            examples_per_s=float(len(self.digits.x_train) / steady),
            seconds=float(self.times[-1] - self.times[0]),
        )


def furthest(weights: list[np.ndarray], others: list[np.ndarray]) -> float:
    """Return the largest absolute difference between two lists of weights.

    Args:
        weights: Arrays.
        others: Arrays of the same shapes.

    Returns:
        The difference; infinity where either is not a number, for nothing is near NaN.

    """
    differences = [np.abs(a - b).max() for a, b in zip(weights, others, strict=True)]
    return float(np.nan_to_num(max(differences), nan=np.inf)) if np.isfinite(differences).all() else float("inf")


def train_with_fit(run: Run) -> tuple[Any, list[float]]:
    """Train with Keras `compile` and `fit`.

    Args:
        run: Strategy, data and clock.

    Returns:
        The model, and one mean loss an epoch.

    """
    model, optimizer = run.model_and_optimizer()
    with run.strategy.scope():
        model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    clock = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: run.epoch_done())
    history = model.fit(run.dataset, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[clock])
    return model, history.history["loss"]


def train_with_loop(run: Run) -> tuple[Any, list[float]]:
    """Train with our loop and step.

    Args:
        run: Strategy, data and clock.

    Returns:
        The model, and one mean loss an epoch.

    """
    model, optimizer = run.model_and_optimizer()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    step = replica.make_train_step(run.strategy, model, optimizer, loss)
    history = loop.train(run.strategy, step, run.dataset, EPOCHS, on_epoch=lambda epoch: run.epoch_done())
    return model, [epoch.loss for epoch in history]


def train_as_widely_copied(run: Run) -> tuple[Any, list[float]]:
    """Train with the loop that most tutorials print, wrong as it is.

    Args:
        run: Strategy, data and clock.

    Returns:
        The model, and what the loop calls its mean loss, one an epoch.

    """
    model, optimizer = run.model_and_optimizer()
    losses = []
    for _ in range(EPOCHS):
        losses += widely_copied.train_widely_copied(
            run.strategy, model, optimizer, widely_copied.mean_crossentropy, run.dataset, epochs=1
        )
        run.epoch_done()
    return model, losses


WAYS = (
    Way("one device, fit", 1, train_with_fit),
    Way("mirrored, fit", N_REPLICAS, train_with_fit),
    Way("mirrored, custom loop", N_REPLICAS, train_with_loop),
    Way("two workers, fit", 2, on_workers.way("multi_worker_fit")),
    Way("two workers, custom loop", 2, on_workers.way("multi_worker")),
    Way("two ranks, our all-reduce", 2, on_workers.way("from_scratch")),
    Way(
        "widely copied loop",
        N_REPLICAS,
        train_as_widely_copied,
        equals_one_device=False,
        wrong_because="every replica trains on the same examples, for the dataset is never distributed; and a mean "
        f"loss is added up over the replicas, so gradients are {N_REPLICAS} times too large",
    ),
)


def run_all(on_way: Callable[[Way], None], on_epoch: Callable[[], None], ways: tuple[Way, ...] = WAYS) -> Result:
    """Train in every way and compare with the first.

    Args:
        on_way: Called before each way, for progress.
        on_epoch: Called after each epoch, for progress.
        ways: The ways; the first is the reference.

    Returns:
        Rows, counterexamples, loss curves, and a sentence for each promise that was not kept.

    """
    rows, counterexamples, losses, failures = [], [], {}, []
    reference = None
    for way in ways:
        on_way(way)
        run = Run(way.n_replicas, on_epoch)
        model, losses[way.name] = way.train(run)
        row = run.row(way, model, losses[way.name], reference)
        if way.wrong_because:
            counterexamples.append((row, way.wrong_because))
            continue
        rows.append(row)
        reference = reference or model.get_weights()
        if way.equals_one_device and not row.max_weight_difference < TOLERANCE:
            failures.append(
                f"{way.name}: the furthest weight is {row.max_weight_difference:.1e} from one device; "
                f"rounding explains at most {TOLERANCE:.0e}"
            )
    return Result(rows, counterexamples, losses, failures)
