"""What is the gradient of an embedding, and why must its rows be added up before anything else?

Looking up rows of a table gives a gradient only for those rows, as `tf.IndexedSlices`: row numbers and values. A row
that was looked up twice stands there twice. Over replicas the lists are joined, so repeats are the rule:

    replica 0: rows 2, 2, 5      replica 1: rows 2, 0       joined: 2, 2, 5, 2, 0       added up: 2, 5, 0

The gradient of row 2 is the sum of its three entries. Plain SGD may add them one by one; but Adam, Adagrad and RMSprop
square what they get, and a norm counts the parts: a^2 + b^2 is not (a + b)^2. So: reduce, **add repeated rows**, clip,
apply. Keras as shipped does not, on one device neither. The oracle is therefore the dense gradient.

Once each row stands once, Keras's clipping (by value, norm, global norm) and its optimizers give the dense result: a
test holds fourteen of them against it.

Cost: one sort of the row numbers. Left out: making it dense when that is cheaper.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()


def sum_repeated_rows(gradient: Any) -> Any:
    """Add up the rows that stand more than once in a sparse gradient.

    Args:
        gradient: `tf.IndexedSlices` with values of shape [entries, ...] and indices of shape [entries]; a dense tensor
            or `None` is given back as it is.

    Returns:
        `tf.IndexedSlices` in which each row number stands once, in order of first appearance; equal as a dense tensor.

    Example:
        >>> g = tf.IndexedSlices(tf.constant([[1.0], [2.0], [4.0]]), tf.constant([3, 0, 3]), tf.constant([5, 1]))
        >>> sum_repeated_rows(g).indices.numpy().tolist(), sum_repeated_rows(g).values.numpy().ravel().tolist()
        ([3, 0], [5.0, 2.0])

    """
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, position = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, position, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)
