"""The few small models that every lesson uses: so small that a step takes a millisecond, and real all the same.

All give logits (no softmax at the end): the loss takes `from_logits=True`. All draw their first weights from a seed,
so that a model on one device and a model on four replicas start from the same numbers.
"""

from __future__ import annotations

from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)


def digits_mlp(hidden: int = 64, l2: float = 0.0, seed: int = 0) -> keras.Model:
    """Build a perceptron for the digits: 64 pixels, one hidden layer, 10 logits.

    Args:
        hidden: Width of the hidden layer.
        l2: Weight of an L2 penalty on the kernels; 0 means none.
        seed: Seed of the first weights. Sets Keras's global seed.

    Returns:
        A model from float [batch, 64] to logits [batch, 10]; with 64 hidden units it has 4,810 weights.

    """
    penalty = keras.regularizers.L2(l2) if l2 else None
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.layers.Input((64,)),
            keras.layers.Dense(hidden, activation="relu", kernel_regularizer=penalty),
            keras.layers.Dense(10, kernel_regularizer=penalty),
        ]
    )


def digits_convnet(
    seed: int = 0, batch_norm: keras.layers.Layer | None = None, dropout: keras.layers.Layer | None = None
) -> keras.Model:
    """Build a convolutional network for the digits, with room for the layers that surprise under a strategy.

    Args:
        seed: Seed of the first weights. Sets Keras's global seed.
        batch_norm: A normalisation layer after the convolution, or `None`.
        dropout: A dropout layer before the logits, or `None`.

    Returns:
        A model from float [batch, 64] to logits [batch, 10].

    """
    keras.utils.set_random_seed(seed)
    layers = [
        keras.layers.Input((64,)),
        keras.layers.Reshape((8, 8, 1)),
        keras.layers.Conv2D(8, 3, padding="same", use_bias=batch_norm is None),
        batch_norm,
        keras.layers.ReLU(),
        keras.layers.MaxPooling2D(2),
        keras.layers.Flatten(),
        dropout,
        keras.layers.Dense(10),
    ]
    return keras.Sequential([layer for layer in layers if layer is not None])
