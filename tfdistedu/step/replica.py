r"""What happens in one training step, on every replica?

This is the whole step. One device, four virtual CPUs, four GPUs and several workers run the same lines; what differs
is how many replicas take part in the two reductions.

    replica 0   batch 0 -> forward -> share of the loss -> gradients --\
    replica 1   batch 1 -> forward -> share of the loss -> gradients ---+--> add -> clip -> apply, the same on all
    replica 2   (none)  -> forward -> 0 ---------------> zeros --------/

After it, every replica holds the weights that one device would have after the same global batch.

Cost: one all-reduce of the gradients, and one of an integer (the global count). In graph mode the step is traced once
or twice; eagerly it does the same work slower, and a breakpoint in `replica_step` stops there.
Left out: accumulation (`accumulate`), loss scaling (`precision`); the same step with public API alone is
`cross_replica`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.guards import check_cross_replica_context, check_distributed
from tfdistedu.step.loss import loss_share, zero_without_examples
from tfdistedu.step.parts import check_copies, check_parts

tf = import_tensorflow()
SUM = tf.distribute.ReduceOp.SUM


def count_examples(batch: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Count the examples on this replica, and on all of them.

    Args:
        batch: A (nested) batch; its first tensor has shape [replica_batch, ...].

    Returns:
        Two int32 scalars: this replica's count, and the global count.

    """
    count = tf.shape(tf.nest.flatten(batch)[0])[0]
    context = tf.distribute.get_replica_context()
    return count, context.all_reduce(SUM, count) if context.num_replicas_in_sync > 1 else count


def make_train_step(
    strategy: tf.distribute.Strategy,
    model: Any,
    optimizer: Any,
    loss: Any,
    metrics: Sequence[Any] = (),
    graph: bool = True,
) -> Callable[[Any], tf.Tensor]:
    """Make the step of one strategy: it takes a distributed global batch and gives its loss.

    Args:
        strategy: Any strategy; `tf.distribute.get_strategy()` is one device.
        model: A Keras model made in the strategy's scope.
        optimizer: A Keras optimizer made there, best one of `tfdistedu.step.optimizer`.
        loss: See `tfdistedu.step.loss.loss_share`.
        metrics: Keras metrics made there, updated with `(y, predictions, sample_weight)`.
        graph: Whether the step runs as a `tf.function` (fast) or eagerly (can be stepped through).

    Returns:
        A function from a batch `(x, y)` or `(x, y, sample_weight)` of per-replica values to the loss of the global
        batch before the update, a scalar tensor.

    Raises:
        BadInput: Something was made outside the scope, or means something else on replicas (see `parts`).

    Example:
        >>> strategy = tf.distribute.get_strategy()
        >>> model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
        >>> step = make_train_step(strategy, model, SGD(0.25), "mse")
        >>> float(step((tf.constant([[1.0]]), tf.constant([[3.0]])))), model.get_weights()[0].tolist()
        (4.0, [[2.0]])

    """
    check_parts(strategy, model, optimizer, metrics)

    # --8<-- [start:replica_step]
    def replica_step(x: Any, y: Any, sample_weight: Any = None) -> tf.Tensor:
        # Step 1: count. A mean over the global batch needs the number of all examples, not of mine.
        count, global_count = count_examples(x)
        # Step 2: forward. My share of the loss: my sum, divided by the global count.
        with tf.GradientTape() as tape:
            predictions = model(x, training=True)
            share = loss_share(loss, y, predictions, global_count, sample_weight, sum(model.losses))
            scaled = optimizer.scale_loss(share)
        # Step 3: backward. A replica without examples adds nothing, also where a mean over nothing is NaN.
        gradients = zero_without_examples(tape.gradient(scaled, model.trainable_variables), count)
        # Step 4: reduce, clip, apply. The optimizer adds the shares' gradients up before it clips.
        optimizer.apply(gradients, model.trainable_variables)
        for metric in metrics:
            metric.update_state(y, predictions, sample_weight)
        return zero_without_examples([share], count)[0]

    def step(batch: Any) -> tf.Tensor:
        shares = run_on_replicas(strategy, replica_step, batch)
        # Step 5: the loss of the global batch is the sum of the shares; a mean would divide twice.
        return strategy.reduce(SUM, shares, axis=None)

    # --8<-- [end:replica_step]
    return checked(strategy, tf.function(step, reduce_retracing=True) if graph else step, model)


def run_on_replicas(strategy: tf.distribute.Strategy, function: Callable[..., Any], batch: Any) -> Any:
    """Call a function on each replica with its part of a batch, whose size the graph must not know.

    Replicas meet in their reductions in the order in which each built them. TensorFlow generalises the shapes of a
    batch replica by replica: after a batch of 1 and one of 2 examples on two replicas, the first is known to have 1,
    the second any number. Keras's synchronised batch normalisation then builds one reduction more on the second, and
    the two no longer meet. So no replica is told its number.

    Args:
        strategy: Any strategy.
        function: Called with the parts `(x, y, ...)`, tensors of shape [replica_batch, ...].
        batch: A tuple of per-replica values.

    Returns:
        What `strategy.run` returns: per-replica results.

    """

    def without_size(tensor: tf.Tensor | None) -> tf.Tensor | None:
        if tensor is None or tf.executing_eagerly() or not tensor.shape.rank:
            return tensor
        return tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=[None, *tensor.shape[1:]])

    def on_replica(*parts: Any) -> Any:
        return function(*tf.nest.map_structure(without_size, parts))

    return strategy.run(on_replica, args=tuple(batch))


def checked(strategy: tf.distribute.Strategy, step: Callable[[Any], Any], model: Any = None) -> Callable[[Any], Any]:
    """Put the checks of a batch before a step, outside of its traced function.

    Args:
        strategy: The strategy that the step belongs to.
        step: A function of one batch.
        model: The model that the step trains, whose copies are compared once, after the first step.

    Returns:
        The same function, which refuses batches that were not distributed and calls from replica context.

    """
    unseen = [model] if model is not None and strategy.num_replicas_in_sync > 1 else []

    def checked_step(batch: Any) -> Any:
        check_cross_replica_context("a training step")
        check_distributed(strategy, batch)
        try:
            result = step(batch)
        except tf.errors.OpError as error:  # what goes wrong in Python, in a graph
            if getattr(strategy, "failure", None) is None:
                raise
            raise strategy.failure from error
        while unseen:
            check_copies(strategy, unseen.pop())
        return result

    return checked_step
