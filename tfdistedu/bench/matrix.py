"""What works where? Each combination of strategy, Keras, way and mode is run, and judged by the weights it gives.

Every cell trains the same small network on the same digits from the same weights, for a few steps of SGD with momentum.
The judge is NumPy: forward, backward and update of one device, written out below. Three *situations* part the ways that
look alike: batches that divide evenly, a ragged last batch, and clipping that binds.

    equal   the weights are one device's, up to float32
    other   it runs, without an error, and trains something else; how far off stands beside it
    fails   the first line of the error stands beside it

A row for another strategy is one more entry in `STRATEGIES`. Cost: 60 processes of half a second each, and 36 clusters
of a second. Left out: speed, and how far apart the ways drift later: a few steps are enough to tell them apart.
"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from tfdistedu.bench.clustered import from_scratch, multi_worker, run_clustered
from tfdistedu.bench.isolated import run_isolated
from tfdistedu.bench.ways import HIDDEN, MOMENTUM, RATE, WAYS

N_REPLICAS = 2
TOLERANCE = 1e-5  # a handful of float32 steps of size 1: roundings give some 1e-7, the mildest fault here 1e-3


class Situation(NamedTuple):
    """One kind of work: examples of each global batch, and the global norm to clip at (`None`: no clipping)."""

    name: str
    batches: tuple[int, ...]
    clip: float | None


class Strategy(NamedTuple):
    """One strategy of the table: how it is made inside the process of a cell, how a cell is run, and in which ways."""

    name: str
    make: Callable[[], Any]
    run: Callable[..., Any] = run_isolated
    ways: tuple[str, ...] = tuple(WAYS)


class Cell(NamedTuple):
    """One outcome: `equal`, `other` or `fails`; the largest difference of a weight, or what failed, else `None`."""

    strategy: str
    keras: str
    way: str
    mode: str
    situation: str
    outcome: str
    distance: float | None
    error: str | None


def one_device() -> Any:
    """Make the strategy that is no strategy.

    Returns:
        TensorFlow's default strategy.

    """
    import tensorflow as tf

    return tf.distribute.get_strategy()


def mirrored() -> Any:
    """Make a `MirroredStrategy`.

    Returns:
        The strategy, with `N_REPLICAS` replicas.

    """
    from tfdistedu.devices import mirrored_strategy

    return mirrored_strategy(N_REPLICAS)


SITUATIONS = (
    Situation("even batches", (32, 32), None),
    Situation("ragged last batch", (32, 3), None),
    Situation("clipping", (32, 32), 0.25),
)
OUR_WAY = "our loop"  # the one way that promises equality: the command fails if it is broken
STRATEGIES = (
    Strategy("one device", one_device),
    Strategy("MirroredStrategy", mirrored),
    Strategy("MultiWorkerMirroredStrategy", multi_worker, run_clustered),
    Strategy("our all-reduce", from_scratch, run_clustered, (OUR_WAY,)),
)
KERAS = {"Keras 3": "keras", "tf_keras": "tf_keras"}
MODES = {"graph": True, "eager": False}


# --- the judge ---


def trained_by_numpy(start: list[np.ndarray], batches: list[tuple], clip: float | None) -> list[np.ndarray]:
    """Train the network in NumPy, in float64: what one device should give.

    Args:
        start: Kernel and bias of both layers.
        batches: Global batches `(x, y)`; x [examples, 64], y [examples].
        clip: Global norm to clip at, or `None`.

    Returns:
        The weights after one step a batch.

    """
    weights = [w.astype(np.float64) for w in start]
    velocities = [np.zeros_like(w) for w in weights]
    for x, y in batches:
        # Step 1: forward. One hidden layer with ReLU, then softmax.
        w1, b1, w2, b2 = weights
        hidden = np.maximum(x @ w1 + b1, 0)
        odds = np.exp(hidden @ w2 + b2)
        # Step 2: backward. The gradient of the mean cross-entropy by the logits is (probabilities - labels) / examples.
        by_logits = (odds / odds.sum(1, keepdims=True) - np.eye(10)[y]) / len(x)
        by_hidden = (by_logits @ w2.T) * (hidden > 0)
        gradients = [x.T @ by_hidden, by_hidden.sum(0), hidden.T @ by_logits, by_logits.sum(0)]
        # Step 3: clip by the norm of all gradients together.
        norm = np.sqrt(sum(np.square(g).sum() for g in gradients))
        factor = 1.0 if clip is None else min(1.0, clip / norm)
        # Step 4: momentum.
        velocities = [MOMENTUM * v - RATE * factor * g for v, g in zip(velocities, gradients, strict=True)]
        weights = [w + v for w, v in zip(weights, velocities, strict=True)]
    return weights


def first_weights() -> list[np.ndarray]:
    """Draw the weights that every cell starts from.

    Returns:
        Kernel and bias of both layers, float32.

    """
    draw = np.random.default_rng(0).normal
    shapes = ((64, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,))
    return [draw(scale=0.3, size=shape).astype(np.float32) for shape in shapes]


# --- the table ---

# Why a cell is not equal, where we know: shown below the table, when there is such a cell.
REASONS = {
    ("ragged last batch", "fit"): "`fit` takes the mean of the replicas' means: an example on a replica that has fewer "
    "counts for more. Let batches divide evenly, or use the loop.",
    (
        "fails",
        "MultiWorkerMirroredStrategy",
    ): "Keras 3's `fit` reduces its logs over an axis that they do not have. The "
    "recipe `multi_worker_fit` mends it, with two small overrides.",
    ("clipping", "Keras 3"): "Keras 3 clips each replica's own gradient, and then adds up. The optimizers of "
    "`tfdistedu.step.optimizer` add up first, in `fit` and in a loop.",
}


def asked_cells() -> list[tuple[Strategy, str, str, str, Situation]]:
    """List what the table asks, row by row.

    Returns:
        Strategy, Keras, way, mode and situation of each cell.

    """
    return [
        (strategy, library, way, mode, situation)
        for strategy in STRATEGIES
        for library in KERAS
        for way in WAYS
        if way in strategy.ways and (way != OUR_WAY or library == "Keras 3")
        for mode in MODES
        for situation in SITUATIONS
    ]


def distance_of(make: Callable[[], Any], library: str, way: str, mode: str, situation: Situation, xy: tuple) -> float:
    """Train one cell in this process, and measure how far its weights are from NumPy's.

    Args:
        make: Makes the strategy.
        library: A key of `KERAS`.
        way: A key of `WAYS`.
        mode: A key of `MODES`.
        situation: The kind of work.
        xy: Examples, at least as many as the batches need.

    Returns:
        The largest absolute difference of a weight.

    """
    import tensorflow as tf

    x, y = (array[: sum(situation.batches)] for array in xy)
    strategy, start = make(), first_weights()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(situation.batches[0])
    module = importlib.import_module(KERAS[library])
    model = WAYS[way](strategy, module, dataset, situation.clip, MODES[mode], start)
    cuts = np.cumsum(situation.batches)[:-1]
    batches = list(zip(np.split(x, cuts), np.split(y, cuts), strict=True))
    expected = trained_by_numpy(start, batches, situation.clip)
    return max(float(np.abs(a - b).max()) for a, b in zip(model.get_weights(), expected, strict=True))


def run_matrix(
    chosen: Callable[[str, str, str, str, str], bool] = lambda *_: True,
    on_cell: Callable[[Cell], None] | None = None,
    deadline: float = 60.0,
) -> list[Cell]:
    """Run the cells, each in a process of its own.

    Args:
        chosen: Tells from the names of strategy, Keras, way, mode and situation whether a cell is to be run.
        on_cell: Called after each cell, for progress.
        deadline: Seconds for one cell.

    Returns:
        The cells, row by row.

    """
    from tfdistedu.data.digits import load_digits

    digits = load_digits()
    done = []
    for strategy, library, way, mode, situation in asked_cells():
        names = (strategy.name, library, way, mode, situation.name)
        if not chosen(*names):
            continue
        asked = (strategy.make, library, way, mode, situation, (digits.x_train, digits.y_train))
        value, error = strategy.run(distance_of, *asked, deadline=deadline)
        distance = value if value is not None and np.isfinite(value) else None
        equal = distance is not None and distance <= TOLERANCE
        done.append(Cell(*names, "fails" if error else "equal" if equal else "other", distance, error))
        if on_cell is not None:
            on_cell(done[-1])
    return done


def as_rows(cells: list[Cell]) -> list[list[str]]:
    """Lay cells out as the table that people read: one row a strategy, Keras, way and mode; one column a situation.

    Args:
        cells: What `run_matrix` gave.

    Returns:
        Rows of text; the first one is the head.

    """
    rows: dict[tuple, dict[str, str]] = {}
    for cell in cells:
        text = {
            "equal": "equal",
            "other": "other: NaN" if cell.distance is None else f"other: {cell.distance:.2g}",
            "fails": f"fails: {cell.error}",
        }[cell.outcome]
        rows.setdefault(cell[:4], {})[cell.situation] = text
    names = [situation.name for situation in SITUATIONS]
    return [
        ["strategy", "Keras", "way", "mode", *names],
        *([*row, *(of.get(name, "") for name in names)] for row, of in rows.items()),
    ]


def reasons_for(cells: list[Cell]) -> list[str]:
    """Collect why cells are not equal, where that is known.

    Args:
        cells: What `run_matrix` gave.

    Returns:
        Sentences, one a known reason.

    """
    return [
        f"{what}: {text}"
        for (what, name), text in REASONS.items()
        if any(
            (cell.outcome == "fails" and what == "fails" and name == cell.strategy)
            or (cell.outcome == "other" and cell.situation == what and name in (cell.way, cell.keras))
            for cell in cells
        )
    ]


def versions() -> dict[str, str]:
    """Name the versions that the table speaks of.

    Returns:
        Version by name, of Python and of the packages that matter.

    """
    packages = ("tensorflow", "keras", "tf-keras", "numpy")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
