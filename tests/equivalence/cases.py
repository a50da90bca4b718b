"""Which training runs must equal one device's? This is the domain, written down as what Hypothesis draws.

In: models with and without hidden layer, with an embedding (sparse gradients), with synchronised batch normalisation on
centred inputs; losses that are a mean, a sum, a scalar of their own, a function; sample weights; SGD, momentum,
Nesterov, Adam, AdamW; clipping by value, norm, global norm, at bounds that bind and that do not; L2; one to four
replicas; any sequence of global batch sizes from 1 up, so also ragged ones and fewer examples than replicas; graph
and eager; the step in replica context and the one in cross-replica context.

Out: dropout (another mask on each replica is right; its own tests say what holds), batch normalisation that is not
synchronised (another function) or not centred (its variance is E[x^2] - E[x]^2, which cancels), float32 (tolerances
would hide a missing example), and Keras `fit` (its own tests).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tfdistedu.data.batches import on_replicas
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.cross_replica import make_cross_replica_step
from tfdistedu.step.optimizer import reduce_first
from tfdistedu.step.replica import make_train_step

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

N_FEATURES, N_CLASSES, N_ROWS = 5, 3, 6


@dataclass(frozen=True)
class Case:
    """One training run; `batch_sizes` are the examples of each global batch, one step each."""

    model: str
    loss: str
    weighted: bool
    optimizer: str
    clip: str | None
    bound: float
    l2: float
    batch_sizes: tuple[int, ...]
    n_replicas: int
    graph: bool
    way: str
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a case; replicas lean to many and batches to few examples, for there the faults are."""
    loss = draw(st.sampled_from(["mean", "sum", "scalar", "function"]))
    small = st.integers(1, 3)
    size = st.one_of(small, st.integers(1, 13))
    return Case(
        model=draw(st.sampled_from(["linear", "mlp", "embedding", "batch_norm"])),
        loss=loss,
        weighted=loss != "scalar" and draw(st.booleans()),
        optimizer=draw(st.sampled_from(["sgd", "momentum", "nesterov", "adam", "adamw"])),
        clip=draw(st.sampled_from([None, "clipvalue", "clipnorm", "global_clipnorm"])),
        bound=draw(st.sampled_from([0.003, 0.05, 10.0])),
        l2=draw(st.sampled_from([0.0, 0.1])),
        batch_sizes=tuple(draw(st.lists(size, min_size=1, max_size=4))),
        n_replicas=draw(st.sampled_from([4, 3, 2, 1])),
        graph=draw(st.booleans()),
        way=draw(st.sampled_from(["replica", "cross_replica"])),
        seed=draw(st.integers(0, 2**16)),
    )


def make_data(case: Case) -> list[tuple[np.ndarray, ...]]:
    """Return the global batches of a case, as tuples `(x, y)` or `(x, y, weight)`."""
    rng = np.random.default_rng(case.seed)
    batches = []
    for size in case.batch_sizes:
        y = rng.integers(0, N_CLASSES, size)
        rows = rng.integers(0, N_ROWS, (size, 3))  # they repeat within and across replicas, and some are missing
        x = rows if case.model == "embedding" else rng.normal(size=(size, N_FEATURES))
        batches.append((x, y, rng.uniform(0.1, 2.0, size)) if case.weighted else (x, y))
    return batches


def make_model(case: Case) -> keras.Model:
    """Build the case's model; weights come from the seed, so a second call gives the same ones."""
    keras.utils.set_random_seed(case.seed)
    penalty = keras.regularizers.L2(case.l2) if case.l2 else None
    hidden = keras.layers.Dense(4, activation="tanh", kernel_regularizer=penalty)
    layers = {
        "linear": [],
        "mlp": [hidden],
        "embedding": [keras.layers.Embedding(N_ROWS, 2), keras.layers.Flatten()],
        "batch_norm": [hidden, keras.layers.BatchNormalization(synchronized=True)],
    }[case.model]
    inputs = keras.layers.Input((3,), dtype="int64") if case.model == "embedding" else keras.layers.Input((N_FEATURES,))
    return keras.Sequential([inputs, *layers, keras.layers.Dense(N_CLASSES, kernel_regularizer=penalty)])


def make_optimizer(case: Case, wrap: Any) -> keras.optimizers.Optimizer:
    """Build the case's optimizer; `wrap` turns a Keras class into the one to use."""
    rate = 0.02 if case.loss == "sum" else 0.1
    kind, settings = {
        "sgd": (keras.optimizers.SGD, {"learning_rate": rate}),
        "momentum": (keras.optimizers.SGD, {"learning_rate": rate, "momentum": 0.9}),
        "nesterov": (keras.optimizers.SGD, {"learning_rate": rate, "momentum": 0.9, "nesterov": True}),
        "adam": (keras.optimizers.Adam, {"learning_rate": 0.01}),
        "adamw": (keras.optimizers.AdamW, {"learning_rate": 0.01, "weight_decay": 0.1}),
    }[case.optimizer]
    return wrap(kind)(**settings, **({case.clip: case.bound} if case.clip else {}))


def crossentropy(y: Any, logits: Any) -> tf.Tensor:
    """Return one value an example, shape [batch]."""
    return keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True)


LOSSES = {
    "mean": lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    "sum": lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum"),
    "scalar": lambda: lambda y, logits: tf.reduce_mean(crossentropy(y, logits)),  # 0/0 on a replica without examples
    "function": lambda: crossentropy,
}


def train_on_one_device(case: Case) -> tuple[list[np.ndarray], list[float], bool]:
    """Train with Keras and a tape alone: nothing of tfdistedu, no strategy, dense gradients.

    Returns:
        All weights, the loss of each step, and whether clipping changed a gradient.

    """
    model, optimizer = make_model(case), make_optimizer(case, lambda kind: kind)
    losses, bound_reached = [], False
    for x, y, *weight in make_data(case):
        with tf.GradientTape() as tape:
            values = crossentropy(y, model(tf.constant(x), training=True))
            values = values * tf.constant(weight[0]) if weight else values
            data = tf.reduce_sum(values) if case.loss == "sum" else tf.reduce_sum(values) / len(y)
            loss = data + sum(model.losses)
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]
        size = {
            None: 0.0,
            "clipvalue": max(float(tf.reduce_max(tf.abs(g))) for g in gradients),
            "clipnorm": max(float(tf.norm(g)) for g in gradients),
            "global_clipnorm": float(tf.linalg.global_norm(gradients)),
        }[case.clip]
        bound_reached |= size > case.bound
        optimizer.apply(gradients, model.trainable_variables)
        losses.append(float(loss))
    return model.get_weights(), losses, bound_reached


def train_on_replicas(case: Case, strategy: tf.distribute.Strategy) -> tuple[list[list[np.ndarray]], list[float]]:
    """Train with our step; return each replica's copy of all weights, and the loss of each step."""
    with strategy.scope():
        model = make_model(case)
        optimizer = make_optimizer(case, reduce_first if case.way == "replica" else lambda kind: kind)
    make = make_train_step if case.way == "replica" else make_cross_replica_step
    step = make(strategy, model, optimizer, LOSSES[case.loss](), graph=case.graph)
    losses = [float(step(on_replicas(strategy, batch))) for batch in make_data(case)]
    copies = [
        strategy.experimental_local_results(variable.value) for variable in model.variables if _is_weight(variable)
    ]
    return [[copy.numpy() for copy in replica] for replica in zip(*copies, strict=True)], losses


def _is_weight(variable: keras.Variable) -> bool:
    return "seed" not in variable.path
