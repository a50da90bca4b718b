"""What do simulated workers learn? A small network on real digits, in NumPy: the gradients are real, only time is not.

    64 pixels --w1, b1--> 32, ReLU --w2, b2--> 10 scores --softmax, cross entropy--> loss

All weights lie in one flat array, as a parameter server holds them: 2,410 numbers in float32.

Cost: some 50 microseconds a gradient of 16 examples. Left out: everything that TensorFlow is for.
"""

from __future__ import annotations

import numpy as np

from tfdistedu.data.digits import N_CLASSES, Digits, load_digits

HIDDEN = 32
_SHAPES = ((64, HIDDEN), (HIDDEN,), (HIDDEN, N_CLASSES), (N_CLASSES,))
_ENDS = np.cumsum([int(np.prod(shape)) for shape in _SHAPES])
N_WEIGHTS = int(_ENDS[-1])


class DigitsModel:
    """The network and its data; it holds no weights.

    Args:
        batch: Examples in a gradient.
        digits: The data; `None` loads them.

    """

    def __init__(self, batch: int = 16, digits: Digits | None = None):
        self.batch = batch
        self.digits = load_digits() if digits is None else digits

    def first_weights(self, rng: np.random.Generator) -> np.ndarray:
        """Draw first weights.

        Args:
            rng: Where chance comes from.

        Returns:
            Float32 of shape [2410]: normal with deviation sqrt(2 / inputs), biases 0.

        """
        w1, b1, w2, b2 = (np.zeros(shape) for shape in _SHAPES)
        w1 += rng.normal(0, np.sqrt(2 / 64), w1.shape)
        w2 += rng.normal(0, np.sqrt(2 / HIDDEN), w2.shape)
        return np.concatenate([part.ravel() for part in (w1, b1, w2, b2)]).astype(np.float32)

    def gradient(self, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Compute the gradient of the mean loss of one batch, drawn from the training digits.

        Args:
            weights: Float32 [2410].
            rng: Draws the batch.

        Returns:
            Float32 [2410].

        """
        chosen = rng.integers(0, len(self.digits.y_train), self.batch)
        return self.gradient_of(weights, self.digits.x_train[chosen], self.digits.y_train[chosen])

    def gradient_of(self, weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Compute the gradient of the mean loss of given examples.

        Args:
            weights: Float [2410].
            x: Pixels, [n, 64].
            y: Labels, [n].

        Returns:
            Float [2410].

        """
        w1, b1, w2, b2 = _parts(weights)
        hidden = np.maximum(x @ w1 + b1, 0)
        scores = hidden @ w2 + b2
        error = np.exp(scores - scores.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(len(y)), y] -= 1
        error /= len(y)
        back = (error @ w2.T) * (hidden > 0)
        gradient = np.empty_like(weights)
        for part, value in zip(
            _parts(gradient), (x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)), strict=True
        ):
            part[...] = value
        return gradient

    def loss(self, weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        """Compute the mean cross entropy of given examples.

        Args:
            weights: Float [2410].
            x: Pixels, [n, 64].
            y: Labels, [n].

        Returns:
            The mean loss.

        """
        w1, b1, w2, b2 = _parts(weights)
        scores = np.maximum(x @ w1 + b1, 0) @ w2 + b2
        scores = scores - scores.max(axis=1, keepdims=True)
        return float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y]).mean())

    def accuracy(self, weights: np.ndarray) -> float:
        """Return the share of test digits that are read right.

        Args:
            weights: Float [2410].

        Returns:
            From 0 to 1; 0.1 for weights that are no numbers any more.

        """
        w1, b1, w2, b2 = _parts(weights)
        scores = np.maximum(self.digits.x_test @ w1 + b1, 0) @ w2 + b2
        return float((scores.argmax(axis=1) == self.digits.y_test).mean())


def _parts(weights: np.ndarray) -> list[np.ndarray]:
    """Return views of the flat array in the shapes of w1, b1, w2, b2."""
    return [weights[end - int(np.prod(shape)) : end].reshape(shape) for shape, end in zip(_SHAPES, _ENDS, strict=True)]
