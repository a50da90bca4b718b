"""What is there to learn on, without a download?

1,797 handwritten digits of 8 x 8 pixels, real data that ships inside scikit-learn [1]. 1,408 train: 22 global
batches of 64, so that every batch divides evenly by 1, 2 and 4 replicas; the other 389 test.

    pixels 0..16  ->  float32 0..1, shape [n, 64];  labels int64 0..9, shape [n]

[1] E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits. UCI Machine Learning Repository, 1998.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

N_TRAIN = 1408
N_CLASSES = 10


class Digits(NamedTuple):
    """The digits, shuffled once and cut in two.

    `x_train` float32 [1408, 64], `y_train` int64 [1408], `x_test` float32 [389, 64], `y_test` int64 [389].
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


def load_digits(seed: int = 0) -> Digits:
    """Load the digits in an order that depends on the seed alone.

    Args:
        seed: Seed of the one shuffle, so that train and test are the same in every process and on every machine.

    Returns:
        Train and test examples.

    Example:
        >>> load_digits().x_train.shape
        (1408, 64)

    """
    from sklearn.datasets import load_digits as scikit_learn_digits  # its import costs a second

    x, y = scikit_learn_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    x = (x[order] / 16.0).astype(np.float32)
    y = y[order].astype(np.int64)
    return Digits(x[:N_TRAIN], y[:N_TRAIN], x[N_TRAIN:], y[N_TRAIN:])
