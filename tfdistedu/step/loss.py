"""How much does one replica's batch add to the loss of the global batch?

One device computes a mean over the global batch. n replicas each see a part, and gradients are *added* over replicas.
So each replica must bring its **share**: the sum over its own examples, divided by the *global* count.

    global batch of 10      replica 0: 3    replica 1: 3    replica 2: 3    replica 3: 1
    share                   sum / 10        sum / 10        sum / 10        sum / 10        added up: the mean over 10
    mean of means           sum / 3         sum / 3         sum / 3         sum / 1         wrong: one example counts 3x

The rule holds for ragged batches and for replicas without examples (their share is 0, not 0/0). A penalty on weights
(L2) is the same on every replica; so each adds it in proportion to its examples, and it counts once.

A Keras loss object divides by the replica's own count and by the number of replicas on its own when it is *called*
under a strategy. Here it is not called: its `call` gives one value an example, and this module does the rest.

Cost: one integer all-reduced for the global count. Left out: Keras masks (give `sample_weight`), losses of a
batch as a whole (Dice, Tversky, Circle), and `mean_with_sample_weight` together with weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

_MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight", "none", None)
# No sum of shares is one of these over the global batch. Dice and Tversky are sums if `axis` leaves the examples.
_OF_THE_BATCH = (keras.losses.Dice, keras.losses.Tversky, keras.losses.Circle)


def is_sum(loss: Any) -> bool:
    """Tell whether a loss is a sum over examples (Keras's `reduction="sum"`), and not a mean.

    Args:
        loss: A Keras loss object or a function.

    Returns:
        True for a Keras loss with `reduction="sum"`; functions, and all other reductions, are means.

    Raises:
        BadInput: A reduction that this module does not know.

    """
    reduction = getattr(loss, "reduction", None)
    if reduction != "sum" and reduction not in _MEANS:
        raise BadInput(f"loss {loss!r}: unknown reduction {reduction!r}; use 'sum', 'sum_over_batch_size' or None.")
    return reduction == "sum"


def loss_share(
    loss: keras.losses.Loss | Callable[[Any, Any], Any] | str,
    y: Any,
    predictions: Any,
    global_count: tf.Tensor,
    sample_weight: Any = None,
    penalty: Any = 0.0,
) -> tf.Tensor:
    """Compute one replica's share of the global batch's loss: shares, added over replicas, are one device's loss.

    Args:
        loss: A Keras loss object, its name, or a function `(y, predictions)` that gives either one value an example
            (shape [replica_batch, ...]) or a scalar, which is taken as the mean over the replica's examples.
        y: Labels, shape [replica_batch, ...].
        predictions: What the model gave, shape [replica_batch, ...].
        global_count: Examples in the global batch, a scalar of any number type.
        sample_weight: One factor an example, shape [replica_batch], or one a value, as [replica_batch, time] for
            sequences; or `None`.
        penalty: The sum of the model's own losses (`sum(model.losses)`), counted once over all replicas.

    Returns:
        A scalar in the type of the loss, at least float32.

    Raises:
        BadInput: `sample_weight` with a loss that is already a scalar; masks, also by `ignore_class`; an unknown
            reduction; a loss that gives neither one value an example nor a scalar (in a graph:
            `tf.errors.InvalidArgumentError`); one of Keras's losses for a model with several outputs; a loss of the
            batch as a whole, on several replicas.

    Example:
        >>> share = loss_share("mse", tf.constant([[1.0]]), tf.constant([[3.0]]), global_count=4)
        >>> float(share)                                  # (3 - 1)**2 / 4
        1.0

    """
    loss = keras.losses.get(loss) if isinstance(loss, str) else loss
    values = _values(loss, y, predictions)
    examples = tf.shape(tf.nest.flatten(y)[0])[0]
    values, count = _one_an_example(values, examples, loss), tf.cast(examples, values.dtype)
    global_count = tf.cast(global_count, values.dtype)
    if is_sum(loss):
        # Step 1a: a sum over examples. Nothing to divide; a scalar is the replica's own sum.
        data = tf.reduce_sum(_weighted(values, sample_weight, loss))
    else:
        # Step 1b: a mean over the global batch. Sum here, divide by the global count.
        total = _sum_over_examples(_weighted(values, sample_weight, loss), count)
        data = tf.math.divide_no_nan(total, global_count)
    # Step 2: the penalty, in proportion to the examples, so that it counts once over all replicas.
    return data + tf.cast(penalty, values.dtype) * tf.math.divide_no_nan(count, global_count)


def zero_without_examples(gradients: list[Any], count: tf.Tensor) -> list[Any]:
    """Put zeros in place of the gradients of a replica that had no example.

    A mean over nothing is 0/0: a loss that is already a scalar, or a layer that averages, gives NaN on an empty
    replica batch, and one NaN spoils the sum.

    Args:
        gradients: Tensors, `tf.IndexedSlices` or `None`.
        count: Examples on this replica, a scalar.

    Returns:
        The gradients where `count > 0`, else zeros of the same shapes.

    """

    def keep(tensor: tf.Tensor) -> tf.Tensor:
        return tf.where(count > 0, tensor, tf.zeros_like(tensor))

    def keep_any(gradient: Any) -> Any:
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(keep(gradient.values), gradient.indices, gradient.dense_shape)
        return None if gradient is None else keep(gradient)

    return [keep_any(gradient) for gradient in gradients]


def _values(loss: Any, y: Any, predictions: Any) -> tf.Tensor:
    """Return one value an example (or a scalar) without Keras's reduction, which divides under a strategy."""
    if not callable(loss):
        raise BadInput(f"the loss must be a Keras loss, its name, or a function (y, predictions), not {loss!r}.")
    if any(getattr(output, "_keras_mask", None) is not None for output in tf.nest.flatten(predictions)):
        raise BadInput("loss_share: the predictions carry a Keras mask; give sample_weight instead.")
    if tf.nest.is_nested(predictions) and (getattr(loss, "__module__", None) or "").startswith("keras."):
        raise BadInput(  # Keras would stack the outputs, and the outputs would be taken for examples
            f"loss {loss!r} is for one output, and the model gave {len(tf.nest.flatten(predictions))}. "
            "Give a function (y, predictions) that adds the losses of the outputs up, one value an example."
        )
    # float16 and bfloat16 cannot count: 1,001 examples are 1,000 in bfloat16. Keras's `compile` widens them too.
    y, predictions = tf.nest.map_structure(_widened, (y, predictions))
    if not isinstance(loss, keras.losses.Loss):
        return _widened(tf.convert_to_tensor(loss(y, predictions)))
    if type(loss).__call__ is not keras.losses.Loss.__call__:
        raise BadInput(
            f"{type(loss).__name__} has a __call__ of its own, which would not be called here: write its `call`, which "
            "gives one value an example, or give a function (y, predictions)."
        )
    y = tf.nest.map_structure(lambda label: keras.ops.convert_to_tensor(label, dtype=loss.dtype), y)
    predictions = tf.nest.map_structure(lambda out: keras.ops.convert_to_tensor(out, dtype=loss.dtype), predictions)
    values = loss.call(y, predictions)
    if isinstance(loss, _OF_THE_BATCH) and (values.shape.rank == 0 or isinstance(loss, keras.losses.Circle)):
        _check_one_replica(loss)
    if getattr(values, "_keras_mask", None) is not None:
        raise BadInput(
            f"loss {loss!r} leaves examples out by a Keras mask (ignore_class?) and takes the mean over the others. "
            "Leave that out, and give those examples sample_weight 0; the mean is then over all."
        )
    return _widened(tf.convert_to_tensor(values))


def _check_one_replica(loss: Any) -> None:
    context = tf.distribute.get_replica_context()
    if context is not None and context.num_replicas_in_sync > 1:
        raise BadInput(
            f"loss {type(loss).__name__} is no mean over examples: it takes a batch as a whole, so parts of it on "
            f"{context.num_replicas_in_sync} replicas train something else. Use a loss of single examples (Dice and "
            "Tversky are with `axis` without 0), or one replica."
        )


def _widened(tensor: Any) -> Any:
    return tf.cast(tensor, tf.float32) if getattr(tensor, "dtype", None) in (tf.float16, tf.bfloat16) else tensor


def _one_an_example(values: tf.Tensor, count: tf.Tensor, loss: Any) -> tf.Tensor:
    """Refuse values that are not one an example: they would be divided by the number of examples all the same."""
    if values.shape.rank == 0:
        return values
    said = (
        f"loss {loss!r} gave shape {values.shape}, whose first dimension is not the number of examples. Give one value "
        "an example, [replica_batch, ...], or a scalar: their mean."
    )
    if tf.executing_eagerly():
        if int(count) != values.shape[0]:
            raise BadInput(f"{said} There are {int(count)}.")
        return values
    with tf.control_dependencies([tf.debugging.assert_equal(tf.shape(values)[0], count, message=said)]):
        return tf.identity(values)


def _weighted(values: tf.Tensor, sample_weight: Any, loss: Any) -> tf.Tensor:
    if sample_weight is None:
        return values
    if values.shape.rank == 0:
        raise BadInput(f"loss {loss!r} is already a scalar; sample_weight needs one value an example.")
    if getattr(loss, "reduction", None) == "mean_with_sample_weight":
        raise BadInput("reduction 'mean_with_sample_weight' with sample_weight: use 'sum_over_batch_size'.")
    weight = tf.cast(sample_weight, values.dtype)
    while weight.shape.rank > values.shape.rank and weight.shape[-1] == 1:  # [replica_batch, 1]
        weight = tf.squeeze(weight, -1)
    missing = values.shape.rank - weight.shape.rank
    if missing < 0:
        raise BadInput(f"sample_weight of shape {weight.shape} is finer than the loss, which is {values.shape}.")
    return values * tf.reshape(weight, tf.concat([tf.shape(weight), [1] * missing], 0))


def _sum_over_examples(values: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    if values.shape.rank == 0:  # already a scalar: the mean over this replica's examples
        return tf.where(count > 0, values * count, tf.zeros_like(values))
    if values.shape.rank > 1:  # several values an example, as in sequences: their mean
        values = tf.reduce_mean(values, axis=list(range(1, values.shape.rank)))
    return tf.reduce_sum(values)
