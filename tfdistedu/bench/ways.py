"""In which ways can one network be trained, by `fit` and by a loop, with Keras 3 and with tf_keras?

Each way here is written as it should be: model and optimizer in the scope, the optimizer built before the first step,
the dataset distributed, the loss a share of the *global* batch. What still differs from one device is the library's.

    fit         compile and fit
    loop        a plain loop, with the library's own optimizer
    our loop    the step, the loop and the optimizer of this package

A way knows nothing of the table that compares them (`tfdistedu.bench.matrix`). Cost: a few steps of a tiny network.
Left out: what people do wrong in such loops; that is for lessons and recipes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

RATE, MOMENTUM, HIDDEN = 0.125, 0.5, 8


def fit(strategy: Any, library: Any, dataset: Any, clip: float | None, graph: bool, start: list[np.ndarray]) -> Any:
    """Train with `compile` and `fit`.

    Args:
        strategy: The strategy.
        library: The module `keras` or `tf_keras`.
        dataset: Global batches.
        clip: Global norm to clip at, or `None`.
        graph: Whether steps are compiled.
        start: First weights.

    Returns:
        The trained model.

    """
    with strategy.scope():
        model = perceptron(library, start)
        loss = library.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = library.optimizers.SGD(RATE, momentum=MOMENTUM, global_clipnorm=clip)
        model.compile(optimizer, loss, run_eagerly=not graph)
    model.fit(dataset, epochs=1, shuffle=False, verbose=0)
    return model


def loop(strategy: Any, library: Any, dataset: Any, clip: float | None, graph: bool, start: list[np.ndarray]) -> Any:
    """Train with a loop as it should be written, and the library's own optimizer.

    Args:
        strategy: The strategy.
        library: The module `keras` or `tf_keras`.
        dataset: Global batches.
        clip: Global norm to clip at, or `None`.
        graph: Whether steps are compiled.
        start: First weights.

    Returns:
        The trained model.

    """
    import tensorflow as tf

    from tfdistedu.synchronous.loop import over_all_workers

    with strategy.scope():
        model = perceptron(library, start)
        optimizer = library.optimizers.SGD(RATE, momentum=MOMENTUM, global_clipnorm=clip)
        optimizer.build(model.trainable_variables)

    def replica_step(x: Any, y: Any, count: Any) -> None:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
            share = tf.reduce_sum(losses) / count
        gradients = tape.gradient(share, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    def step(x: Any, y: Any, count: Any) -> None:
        strategy.run(replica_step, args=(x, y, count))

    step = tf.function(step, reduce_retracing=True) if graph else step
    for x, y in strategy.experimental_distribute_dataset(dataset):
        count = sum(over_all_workers(strategy, [sum(len(part) for part in strategy.experimental_local_results(y))]))
        step(x, y, tf.constant(float(count)))
    return model


def our_loop(strategy: Any, library: Any, dataset: Any, clip: float | None, graph: bool, start: list) -> Any:
    """Train with the step and the optimizer of this package.

    Args:
        strategy: The strategy.
        library: The module `keras`.
        dataset: Global batches.
        clip: Global norm to clip at, or `None`.
        graph: Whether steps are compiled.
        start: First weights.

    Returns:
        The trained model.

    """
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step
    from tfdistedu.synchronous.loop import train

    with strategy.scope():
        model = perceptron(library, start)
        optimizer = SGD(RATE, momentum=MOMENTUM, global_clipnorm=clip)
    loss = library.losses.SparseCategoricalCrossentropy(from_logits=True)
    train(strategy, make_train_step(strategy, model, optimizer, loss, graph=graph), dataset)
    return model


WAYS = {"fit": fit, "loop": loop, "our loop": our_loop}


def perceptron(library: Any, start: list[np.ndarray]) -> Any:
    """Build the network that every way trains.

    Args:
        library: The module `keras` or `tf_keras`.
        start: First weights: kernel and bias of both layers.

    Returns:
        A model from float [batch, 64] to logits [batch, 10].

    """
    layers = library.layers
    model = library.Sequential([library.Input((64,)), layers.Dense(HIDDEN, activation="relu"), layers.Dense(10)])
    model.set_weights(start)
    return model
