"""Strategies for the upstream half, made with TensorFlow alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tensorflow as tf


@pytest.fixture(scope="session")
def upstream_mirrored() -> Callable:
    """Give TensorFlow's own MirroredStrategy over n virtual CPUs; no collectives, so any sequence of n works."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    if len(tf.config.get_logical_device_configuration(cpu) or []) != 4:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
    made = {}

    def give(n_replicas: int) -> tf.distribute.MirroredStrategy:
        if n_replicas not in made:
            devices = [f"CPU:{index}" for index in range(n_replicas)]
            made[n_replicas] = tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
        return made[n_replicas]

    return give
