r"""On which devices do replicas run, on a machine with one CPU or many GPUs?

TensorFlow sees all cores as one CPU. It can split that CPU into *virtual* devices, once, before it wakes up: then
`MirroredStrategy` keeps one replica on each, and everything that happens between four GPUs happens on a laptop too.

    one process     /------------- one physical CPU -------------\
                    | CPU:0      | CPU:1      | CPU:2    | CPU:3 |
                    | replica 0  | replica 1  | ...              |     same code as on GPU:0 .. GPU:3

Virtual devices share the cores: they show that a program is right, and make nothing faster.

    strategy = mirrored_strategy(4)      # four GPUs where there are four, else four virtual CPUs

Left out: several machines (that is the cluster's part), memory limits of GPUs.
"""

from __future__ import annotations

import operator
from typing import Any

from tfdistedu.errors import BadInput, MachineCannot
from tfdistedu.quiet import import_tensorflow, who_woke_tensorflow

tf = import_tensorflow()


def virtual_cpus(n: int) -> list[str]:
    """Split this machine's CPU into n virtual devices, before TensorFlow wakes up.

    Does nothing when the CPU is split into n already, so the first cell of a notebook can be run twice.

    Args:
        n: How many devices; at least 1.

    Returns:
        Their names, `["CPU:0", ..., f"CPU:{n - 1}"]`.

    Raises:
        MachineCannot: TensorFlow is awake with another number of CPUs; the message says what woke it.

    Example:
        >>> virtual_cpus(4)
        ['CPU:0', 'CPU:1', 'CPU:2', 'CPU:3']

    """
    n = _whole_number(n, "virtual_cpus(n)", "devices")
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        if len(_configuration(cpu)) != n:
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * n)
    except RuntimeError:
        raise MachineCannot(
            f"cannot split the CPU into {n} virtual devices: TensorFlow is awake with {len(_configuration(cpu))}, and "
            f"it fixes its devices when it wakes. It was woken by {who_woke_tensorflow()}. Call virtual_cpus({n}) as "
            "the first thing in the program, before any tensor, variable or strategy; in a notebook, restart the "
            "kernel first."
        ) from None
    return [f"CPU:{index}" for index in range(n)]


def replicas(n: int) -> list[str]:
    """Name n devices for n replicas: GPUs when there are n of them, else virtual CPUs.

    A CPU that is split into more than n devices already gives its first n.

    Args:
        n: How many replicas; at least 1.

    Returns:
        Device names, all of one kind: `["GPU:0", ...]` or `["CPU:0", ...]`.

    Raises:
        MachineCannot: Fewer than n GPUs, and TensorFlow is awake with fewer than n CPUs.

    Example:
        >>> replicas(3)
        ['CPU:0', 'CPU:1', 'CPU:2']

    """
    n = _whole_number(n, "replicas(n)", "replicas")
    if len(tf.config.list_physical_devices("GPU")) >= n:
        return [f"GPU:{index}" for index in range(n)]
    split_into = len(_configuration(tf.config.list_physical_devices("CPU")[0]))
    return virtual_cpus(max(n, split_into))[:n]


def mirrored_strategy(devices: int | list[str], cross_device_ops: Any = None) -> tf.distribute.MirroredStrategy:
    """Build a `MirroredStrategy` that does what it says, or refuse.

    On CPUs gradients are added with `ReductionToOneDevice`, unless asked otherwise: TensorFlow's default there
    (collective operations) allows one set of devices a process, and breaks at the second strategy.

    Args:
        devices: A number of replicas (see `replicas`) or device names such as `["CPU:0", "CPU:1"]`.
        cross_device_ops: How gradients are added up: a `tf.distribute.CrossDeviceOps`, or `None` for our choice
            (`ReductionToOneDevice` on CPUs, TensorFlow's own on GPUs).

    Returns:
        The strategy; `strategy.num_replicas_in_sync` equals the number of devices, or this raises.

    Raises:
        BadInput: The same device twice, CPUs and GPUs mixed, `HierarchicalCopyAllReduce` with an odd number of
            replicas (it silently leaves out the last one), `NcclAllReduce` on CPUs (it has no kernel there), a name or
            a class in its place; a device of another task.
        MachineCannot: A device that this process does not have.

    Example:
        >>> mirrored_strategy(2).num_replicas_in_sync
        2

    """
    devices = [devices] if isinstance(devices, str) else devices
    names = [_short_name(device) for device in devices] if isinstance(devices, list | tuple) else replicas(devices)
    kinds = {name.split(":")[0] for name in names}
    _check_devices(names, kinds)
    _check_cross_device_ops(cross_device_ops, len(names), kinds)
    if cross_device_ops is None and kinds == {"CPU"}:
        cross_device_ops = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(names, cross_device_ops=cross_device_ops)
    assert strategy.num_replicas_in_sync == len(names), (strategy.num_replicas_in_sync, names)
    return strategy


def _configuration(cpu: Any) -> list[Any]:
    """Return the logical devices that a physical CPU is, or will be, split into; one if nobody asked."""
    return tf.config.get_logical_device_configuration(cpu) or [tf.config.LogicalDeviceConfiguration()]


def _whole_number(n: int, where: str, what: str) -> int:
    try:
        if isinstance(n, bool):
            raise TypeError
        n = operator.index(n)  # also NumPy's integers; no floats, no strings
    except TypeError:
        raise BadInput(f"{where}: n is a whole number of {what}, not {n!r}.") from None
    if n < 1:
        raise BadInput(f"{where}: n is the number of {what}, at least 1, not {n}.")
    return n


def _short_name(device: str) -> str:
    """Turn "/job:localhost/replica:0/task:0/device:CPU:1", "/cpu:1" or "cpu:1" into "CPU:1"."""
    try:
        spec = tf.DeviceSpec.from_string(device if device.startswith("/") else f"/device:{device}")
    except (AttributeError, ValueError):
        spec = None
    if spec is None or spec.device_type is None:
        raise BadInput(f"{device!r} is no device name; write for example 'CPU:0' or 'GPU:1'.")
    if spec.job not in (None, "localhost") or spec.task:
        raise BadInput(f"{device!r} is a device of another task; a MirroredStrategy has those of its own process only.")
    return f"{spec.device_type.upper()}:{spec.device_index or 0}"


def _check_devices(names: list[str], kinds: set[str]) -> None:
    if not names:
        raise BadInput("mirrored_strategy(devices): no devices; name at least one, or give a number.")
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise BadInput(f"mirrored_strategy(devices): {', '.join(twice)} is named more than once in {names}.")
    if len(kinds) > 1:
        raise BadInput(f"mirrored_strategy(devices): {names} mixes kinds of devices; take all of one kind.")
    have = [f"{device.device_type}:{device.name.rsplit(':', 1)[1]}" for device in tf.config.list_logical_devices()]
    missing = [name for name in names if name not in have]
    if missing:
        highest = max(int(name.rsplit(":", 1)[1]) for name in names)
        remedy = (
            f"For more CPUs call virtual_cpus({highest + 1}) first thing in the program."
            if kinds == {"CPU"}
            else "Name some that it has, or give a number: without GPUs it takes CPUs."
        )
        raise MachineCannot(
            f"mirrored_strategy(devices): this process has no {', '.join(missing)}, it has {', '.join(have)}. {remedy}"
        )


def _check_cross_device_ops(cross_device_ops: Any, n_replicas: int, kinds: set[str]) -> None:
    if not isinstance(cross_device_ops, tf.distribute.CrossDeviceOps | None):
        raise BadInput(
            f"cross_device_ops is an object such as tf.distribute.ReductionToOneDevice(), not {cross_device_ops!r}."
        )
    if isinstance(cross_device_ops, tf.distribute.HierarchicalCopyAllReduce) and n_replicas % 2 and n_replicas > 1:
        raise BadInput(
            f"HierarchicalCopyAllReduce with {n_replicas} replicas: with an odd number it silently leaves out the last "
            "replica's gradients. Use ReductionToOneDevice(), or an even number of replicas."
        )
    if isinstance(cross_device_ops, tf.distribute.NcclAllReduce) and kinds != {"GPU"}:
        raise BadInput(
            "NcclAllReduce works between GPUs only, and has no kernel for CPUs. Use ReductionToOneDevice(), or leave "
            "cross_device_ops out."
        )
