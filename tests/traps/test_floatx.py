"""float64: `set_floatx` alone is too late after the first layer. Own processes: the setting belongs to a process."""

from __future__ import annotations

import pytest

from tests.traps.oracle import StillWrong, still_wrong

LAYERS = """
import keras
keras.layers.Dense(1)  # the first layer fixes the policy
keras.config.set_floatx("float64")
{more}
layer = keras.layers.Dense(1)
layer.build((None, 2))
print(layer.kernel.dtype, layer.compute_dtype)
"""


@pytest.mark.upstream
@still_wrong("the first layer made a policy of float32, and set_floatx does not touch it")
def test_set_floatx_after_the_first_layer_changes_the_next_layer(fresh_processes):
    finished = fresh_processes.run(LAYERS.format(more=""))
    if finished.stdout == "float32 float32\n":
        raise StillWrong("the layer is still float32")
    assert finished.stdout == "float64 float64\n", finished.stderr


@pytest.mark.upstream
def test_set_floatx_before_the_first_layer_is_enough(fresh_processes):
    code = LAYERS.format(more="").replace("keras.layers.Dense(1)  # the first layer fixes the policy\n", "")
    assert fresh_processes.run(code).stdout == "float64 float64\n"


@pytest.mark.upstream
def test_the_policy_set_too_works_after_the_first_layer(fresh_processes):
    finished = fresh_processes.run(LAYERS.format(more='keras.config.set_dtype_policy("float64")'))
    assert finished.stdout == "float64 float64\n", finished.stderr


def test_our_fixture_makes_layers_and_losses_float64(float64):
    import keras

    layer = keras.layers.Dense(1)
    layer.build((None, 2))
    assert (layer.kernel.dtype, layer.compute_dtype) == ("float64", "float64")
    assert keras.losses.MeanSquaredError().dtype == "float64"
