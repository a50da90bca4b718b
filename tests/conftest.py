"""What every test finds: strategies over virtual CPUs made once, float64, and fresh processes at little cost."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import hypothesis
import pytest

from tests.fresh_process import FreshProcesses

os.environ["TFDISTEDU_CACHE"] = os.devnull  # no folder: what a user measured here chooses no algorithm in a test

pytest_plugins = ["tfdistedu.cluster.testing"]

# Shells start what runs in the background with Ctrl-C ignored, and children inherit that; here they are sent one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    "ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile(
    "dev", deadline=None, print_blob=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def fresh_processes() -> Iterator[FreshProcesses]:
    """Run scripts in processes that have imported TensorFlow and not used it: `fresh_processes.run(path_or_code)`."""
    with FreshProcesses() as server:
        yield server


@pytest.fixture(scope="session")
def strategy_with() -> Callable:
    """Give the strategy with n replicas, made once: 1 is one device without a strategy, 2 to 4 are mirrored."""
    from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus

    virtual_cpus(4)
    made = {1: tf.distribute.get_strategy()}

    def give(n_replicas: int):
        if n_replicas not in made:
            made[n_replicas] = mirrored_strategy(n_replicas)
        return made[n_replicas]

    return give


@pytest.fixture
def float64() -> Iterator[None]:
    """Make Keras compute in float64, so that a tolerance can be 1e-10 and still mean something."""
    from tfdistedu.quiet import import_tensorflow

    import_tensorflow()
    import keras

    before = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx(before[0])
    keras.config.set_dtype_policy(before[1])
