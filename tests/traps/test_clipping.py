"""Clipping: Keras 3 clips each replica's own gradient before it adds them up, so the threshold means something else."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.traps.oracle import clipped, right, still_wrong, weights_after

RATE = 0.5
# Two replicas that agree, two that cancel out (the right step is none at all), and one outlier. A test with gradients
# below the limit would pass with any order of clipping.
CASES = {
    "agree": [np.array([3.0, 4.0]), np.array([3.0, 4.0])],
    "outlier": [np.array([0.3, -0.4]), np.array([30.0, 5.0])],
}
SETTINGS = ("clipnorm", "global_clipnorm", "clipvalue")


@pytest.mark.upstream
@still_wrong("Keras 3 clips each replica's gradient, then adds them up")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_keras_clips_the_gradient_of_the_global_batch(upstream_mirrored, setting, case):
    parts = CASES[case]
    got = weights_after(upstream_mirrored(2), lambda: keras.optimizers.SGD(RATE, **{setting: 1.0}), parts)
    right(
        got,
        right=-RATE * clipped(sum(parts), setting, 1.0),
        known_wrong=-RATE * sum(clipped(part, setting, 1.0) for part in parts),
    )


@pytest.mark.upstream
@pytest.mark.parametrize("setting", SETTINGS)
def test_tf_keras_clips_the_gradient_of_the_global_batch(upstream_mirrored, setting):
    import tf_keras

    class Applies(tf_keras.optimizers.SGD):
        def apply(self, gradients, variables):
            self.apply_gradients(zip(gradients, [variable.value for variable in variables], strict=True))

        def build(self, variables):
            super().build([variable.value for variable in variables])

    parts = CASES["outlier"]
    got = weights_after(upstream_mirrored(2), lambda: Applies(RATE, **{setting: 1.0}), parts)
    np.testing.assert_allclose(got, -RATE * clipped(sum(parts), setting, 1.0), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_our_optimizer_clips_the_gradient_of_the_global_batch(strategy_with, setting, case):
    from tfdistedu.step.optimizer import SGD

    parts = CASES[case]
    got = weights_after(strategy_with(2), lambda: SGD(RATE, **{setting: 1.0}), parts)
    np.testing.assert_allclose(got, -RATE * clipped(sum(parts), setting, 1.0), rtol=1e-12)


@pytest.mark.upstream
@still_wrong("Keras 3 clips each replica's gradient, then adds them up")
def test_in_keras_opposite_gradients_of_unequal_length_leave_their_difference(upstream_mirrored):
    # g and -2g, both longer than the limit: clipped first they cancel out, and the model stops learning.
    parts = [np.array([3.0, 4.0]), np.array([-6.0, -8.0])]
    got = weights_after(upstream_mirrored(2), lambda: keras.optimizers.SGD(RATE, global_clipnorm=1.0), parts)
    right(got, right=RATE * np.array([0.6, 0.8]), known_wrong=[0.0, 0.0])


def test_in_ours_opposite_gradients_of_unequal_length_leave_their_difference(strategy_with):
    from tfdistedu.step.optimizer import SGD

    parts = [np.array([3.0, 4.0]), np.array([-6.0, -8.0])]
    got = weights_after(strategy_with(2), lambda: SGD(RATE, global_clipnorm=1.0), parts)
    np.testing.assert_allclose(got, RATE * np.array([0.6, 0.8]), rtol=1e-12)


def test_our_step_refuses_an_optimizer_of_keras_that_would_clip_first(strategy_with, float64):
    from tfdistedu.errors import BadInput
    from tfdistedu.models import digits_mlp
    from tfdistedu.step.replica import make_train_step

    strategy = strategy_with(2)
    with strategy.scope():
        model, optimizer = digits_mlp(hidden=2), keras.optimizers.SGD(RATE, clipnorm=1.0)
    with pytest.raises(BadInput, match=r"clipnorm=1.0.*reduce_first"):
        make_train_step(strategy, model, optimizer, "mse")
