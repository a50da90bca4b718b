"""Can the same step be written with TensorFlow's public API alone?

Yes: let the replicas give their gradients back, and do the rest in *cross-replica context*, outside of
`strategy.run`, where there is one value and not n:

    strategy.run:   gradients of my share           n of each
    outside:        strategy.reduce(SUM) -> clip -> optimizer.apply

Any Keras optimizer works here, with its own clipping: it finds gradients that are already added up. It gives the same
weights as `replica`, and is what to copy where no private method may be touched.

Cost: the reduced gradients travel to one device and back to all, variable by variable, instead of in one batch.
Left out: metrics and loss scaling (`LossScaleOptimizer.apply` refuses cross-replica context).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.loss import loss_share, zero_without_examples
from tfdistedu.step.parts import check_model, check_variables
from tfdistedu.step.replica import SUM, checked, count_examples, run_on_replicas
from tfdistedu.step.sparse import sum_repeated_rows

tf = import_tensorflow()


def make_cross_replica_step(
    strategy: tf.distribute.Strategy, model: Any, optimizer: Any, loss: Any, graph: bool = True
) -> Callable[[Any], tf.Tensor]:
    """Make a training step that reduces, clips and applies in cross-replica context.

    Args:
        strategy: Any strategy.
        model: A Keras model made in the strategy's scope.
        optimizer: Any Keras optimizer made there, but `LossScaleOptimizer`; its own clipping is right here.
        loss: See `tfdistedu.step.loss.loss_share`.
        graph: Whether the step runs as a `tf.function` or eagerly.

    Returns:
        A function from a batch of per-replica values to the loss of the global batch, a scalar tensor.

    """
    check_model(strategy, model)
    check_variables(strategy, optimizer.variables, "optimizer")
    with strategy.scope():
        optimizer.build(model.trainable_variables)
    check_variables(strategy, optimizer.variables, "optimizer")

    def replica_gradients(x: Any, y: Any, sample_weight: Any = None) -> tuple[list[Any], tf.Tensor]:
        count, global_count = count_examples(x)
        with tf.GradientTape() as tape:
            predictions = model(x, training=True)
            share = loss_share(loss, y, predictions, global_count, sample_weight, sum(model.losses))
            scaled = optimizer.scale_loss(share)  # `apply` divides by its loss_scale_factor, if it has one
        gradients = tape.gradient(scaled, model.trainable_variables)
        return zero_without_examples(gradients, count), zero_without_examples([share], count)[0]

    # --8<-- [start:step]
    def step(batch: Any) -> tf.Tensor:
        gradients, shares = run_on_replicas(strategy, replica_gradients, batch)
        # Step 1: reduce. From n shares to the gradient of the global batch.
        gradients = [g if g is None else sum_repeated_rows(strategy.reduce(SUM, g, axis=None)) for g in gradients]
        # Step 2: clip and apply. There is one value here, so the optimizer's own clipping is one device's.
        optimizer.apply(gradients, model.trainable_variables)
        return strategy.reduce(SUM, shares, axis=None)

    # --8<-- [end:step]
    return checked(strategy, tf.function(step, reduce_retracing=True) if graph else step, model)
