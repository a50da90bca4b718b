"""How do k small steps give the update of one large batch, when that batch does not fit into memory?

The gradient of a mean is a sum of the examples' gradients, divided by their number. Sums can wait: each *micro-step*
adds its sum to an accumulator on its own replica, and counts its examples. Only the *update* reads the accumulators,
divides, clips and applies:

    micro-step 1   replica 0: += sum of 3   replica 1: += sum of 3      nothing is sent between replicas
    micro-step 2   replica 0: += sum of 2   replica 1: += nothing
    update         all:  add over replicas, / 8, clip, apply, set to zero

So micro-batches may be ragged, and replicas empty: an example counts 1/8 wherever it came. Dividing each micro-step's
mean by k, as is often done, weighs examples of a small micro-batch more.

The accumulators are `ON_READ` variables with aggregation `SUM`: each replica has its own, and reading one outside of
`strategy.run` is the reduction. When to update is decided here in Python, by counting calls. A decision inside the
graph would put a reduction into a branch, which TensorFlow refuses ("merge_call called while defining a new graph").
Adding zeros in the other micro-steps is no way out either: momentum and weight decay would move the weights.

Cost: one dense copy of the gradients on each replica; one all-reduce an *update*, k times less than one a step.
Left out: batch normalisation sees micro-batches (its statistics are theirs); accumulators are not saved, so `flush`
before a checkpoint.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.loss import is_sum, loss_share, zero_without_examples
from tfdistedu.step.parts import check_parts
from tfdistedu.step.precision import LossScale
from tfdistedu.step.replica import SUM, checked, run_on_replicas

tf = import_tensorflow()


class AccumulatingStep:
    """A step that updates the weights at every k-th call, as one large batch would.

    Made by `make_accumulating_step`. `optimizer.iterations` counts updates, so a schedule of the learning rate does.
    """

    def __init__(
        self, strategy: tf.distribute.Strategy, model: Any, optimizer: Any, loss: Any, n_micro_steps: int, graph: bool
    ):
        self.n_micro_steps = n_micro_steps
        self.pending = 0
        self._strategy, self._model, self._optimizer, self._loss = strategy, model, optimizer, loss
        self._has_gradient: set[int] = set()  # known once a micro-step was traced; the others are no part of the loss
        # A sum over examples is not divided, its penalty is: two sets of accumulators. A mean needs one.
        self._sets = [self._accumulators() for _ in range(2 if is_sum(loss) else 1)]
        self._count = self._accumulator((), tf.int64)
        micro, update = self._micro_step, self._update
        if graph:
            micro, update = tf.function(micro, reduce_retracing=True), tf.function(update)
        self._checked_micro_step, self._update_function = checked(strategy, micro, model), update

    def __call__(self, batch: Any) -> tf.Tensor:
        """Take one micro-step, and update when it is the k-th.

        Args:
            batch: A micro-batch `(x, y)` or `(x, y, sample_weight)` of per-replica values, of any size.

        Returns:
            The loss of this micro-batch, before the update, a scalar tensor.

        """
        value = self._checked_micro_step(batch)
        self.pending += 1
        if self.pending == self.n_micro_steps:
            self.flush()
        return value

    def flush(self) -> bool:
        """Update with what was accumulated since the last update: the left-over at the end of an epoch.

        The left-over counts as one batch of its own, as the ragged last batch of an epoch does on one device.

        Returns:
            Whether there was something.

        """
        if not self.pending:
            return False
        self._update_function()
        self.pending = 0
        return True

    def _micro_step(self, batch: Any) -> tf.Tensor:
        parts, counts = run_on_replicas(self._strategy, self._replica_micro_step, batch)
        parts = [self._strategy.reduce(SUM, part, axis=None) for part in parts]
        count = tf.cast(self._strategy.reduce(SUM, counts, axis=None), parts[0].dtype)
        return sum(self._divided(parts, count))

    def _replica_micro_step(self, x: Any, y: Any, sample_weight: Any = None) -> tuple[list[tf.Tensor], tf.Tensor]:
        count = tf.shape(tf.nest.flatten(x)[0])[0]
        # Step 1: forward. With 1 in place of the global count, a mean is my sum, and the penalty counts per example.
        with tf.GradientTape(persistent=True) as tape:
            predictions = self._model(x, training=True)
            penalty = sum(self._model.losses)
            if is_sum(self._loss):
                data = loss_share(self._loss, y, predictions, 1, sample_weight)
                parts = [data, tf.cast(penalty, data.dtype) * tf.cast(count, data.dtype)]
            else:
                parts = [loss_share(self._loss, y, predictions, 1, sample_weight, penalty)]
            scaled = [self._optimizer.scale_loss(part) for part in parts]
        # Step 2: accumulate. Each part's gradients are added to this replica's own accumulators.
        variables = self._model.trainable_variables
        for accumulators, part in zip(self._sets, scaled, strict=True):
            gradients = zero_without_examples(tape.gradient(part, variables), count)
            for index, (accumulator, gradient) in enumerate(zip(accumulators, gradients, strict=True)):
                if gradient is not None:
                    self._has_gradient.add(index)
                    accumulator.assign_add(tf.convert_to_tensor(gradient))
        self._count.assign_add(tf.cast(count, tf.int64))
        return zero_without_examples(parts, count), count

    def _update(self) -> None:
        variables = self._model.trainable_variables
        gradients: list[Any] = []
        for index, same_variable in enumerate(zip(*self._sets, strict=True)):
            # Step 3: reduce and divide. Reading an accumulator here, outside of strategy.run, adds over replicas.
            sums = [accumulator.read_value() for accumulator in same_variable]
            count = tf.cast(self._count.read_value(), sums[0].dtype)
            gradients.append(sum(self._divided(sums, count)) if index in self._has_gradient else None)
        # Step 4: clip and apply, once.
        if isinstance(self._optimizer, LossScale):
            self._strategy.run(self._optimizer.apply_reduced, args=(gradients, variables))
        else:
            self._optimizer.apply(gradients, variables)
        # Step 5: zero. Not before the optimizer has read them.
        for accumulator in [*itertools.chain(*self._sets), self._count]:
            accumulator.assign(tf.zeros_like(accumulator))

    def _divided(self, parts: list[tf.Tensor], count: tf.Tensor) -> list[tf.Tensor]:
        """Divide by the number of examples: all parts of a mean, and of a sum its penalty alone."""
        return [part if len(parts) == 2 and part is parts[0] else tf.math.divide_no_nan(part, count) for part in parts]

    def _accumulators(self) -> list[tf.Variable]:
        return [self._accumulator(variable.shape, variable.dtype) for variable in self._model.trainable_variables]

    def _accumulator(self, shape: Any, dtype: Any) -> tf.Variable:
        with self._strategy.scope():
            return tf.Variable(
                tf.zeros(shape, dtype),
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM,
            )


def make_accumulating_step(
    strategy: tf.distribute.Strategy, model: Any, optimizer: Any, loss: Any, n_micro_steps: int, graph: bool = True
) -> AccumulatingStep:
    """Make a step whose every k-th call updates the weights as one batch of all examples since the last update would.

    Args:
        strategy: Any strategy; `tf.distribute.get_strategy()` is one device.
        model: A Keras model made in the strategy's scope.
        optimizer: A Keras optimizer made there, best one of `tfdistedu.step.optimizer`.
        loss: See `tfdistedu.step.loss.loss_share`.
        n_micro_steps: k, the micro-steps of one update; at least 1.
        graph: Whether micro-step and update run as `tf.function`s or eagerly.

    Returns:
        A step for `tfdistedu.synchronous.loop.train`. What is left over when an epoch ends is carried into the next,
        unless `on_epoch=lambda epoch: step.flush()`.

    Raises:
        BadInput: Fewer than one micro-step; something made outside the scope (see `parts`).

    Example:
        >>> strategy = tf.distribute.get_strategy()
        >>> model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
        >>> step = make_accumulating_step(strategy, model, SGD(0.25), "mse", n_micro_steps=2)
        >>> _ = step((tf.constant([[1.0]]), tf.constant([[3.0]])))
        >>> model.get_weights()[0].tolist(), step.pending            # nothing happened yet
        ([[1.0]], 1)
        >>> _ = step((tf.constant([[1.0]]), tf.constant([[3.0]])))
        >>> model.get_weights()[0].tolist(), step.pending
        ([[2.0]], 0)

    """
    try:
        n_micro_steps = operator.index(n_micro_steps)
    except TypeError:
        raise BadInput(f"n_micro_steps is a whole number of micro-steps, not {n_micro_steps!r}.") from None
    if n_micro_steps < 1:
        raise BadInput(f"n_micro_steps is the micro-steps of one update, at least 1, not {n_micro_steps}.")
    check_parts(strategy, model, optimizer)
    return AccumulatingStep(strategy, model, optimizer, loss, n_micro_steps, graph)
