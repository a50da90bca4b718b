"""What is on this machine, as far as one can see without waking TensorFlow?

Versions come from the packages' metadata, GPUs from the driver, memory and CPUs from the system and from the limits of
the container. Importing TensorFlow would cost seconds, and looking at devices with it would fix them.

Cost: some files read; `nvidia-smi` only where there is a driver. Left out: whether TensorFlow can use the GPUs.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

_TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tf-nightly", "tensorflow-intel")
_THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "CUDA_VISIBLE_DEVICES")
# What each strategy can do, by the Keras that `import keras` or `tf.keras` gives.
STRATEGIES = {
    3: {
        "MirroredStrategy": "fit and custom loops work",
        "MultiWorkerMirroredStrategy": "custom loops work; fit fails as shipped (recipe multi_worker_fit)",
        "ParameterServerStrategy": "custom loops work; fit fails; no variable partitioner",
    },
    2: {
        "MirroredStrategy": "fit and custom loops work",
        "MultiWorkerMirroredStrategy": "fit works; custom loops too",
        "ParameterServerStrategy": "fit and custom loops work, with a variable partitioner too",
    },
}


def version(*names: str) -> str | None:
    """Return the version of the first of some packages that is installed.

    Args:
        *names: Names of distributions.

    Returns:
        Its version, or `None`.

    """
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def look() -> dict:
    """Look at this machine.

    Returns:
        `python`, `platform`; `tensorflow`, `keras`, `tf_keras` (versions, or `None`); `legacy_keras`, whether
        `tf.keras` is Keras 2; `cpus`, `memory_gb`, `memory_free_gb` (`None`: unknown), `gpus` (names), and
        `variables` (those about threads and devices that are set).

    """
    total, free = _memory()
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "tensorflow": version(*_TENSORFLOWS),
        "keras": version("keras"),
        "tf_keras": version("tf-keras"),
        "legacy_keras": os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"),
        "cpus": _cpus(),
        "memory_gb": total,
        "memory_free_gb": free,
        "gpus": gpus(),
        "variables": {name: os.environ[name] for name in _THREADS if name in os.environ},
    }


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _cpus() -> float:
    """Return how many CPUs this process may use: by its affinity, and by the limit of its container."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _read("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit() and int(quota[1]):
        return min(cpus, round(int(quota[0]) / int(quota[1]), 2))
    return cpus


def _memory() -> tuple[float | None, float | None]:
    """Return memory in GB, whole and free, under the limit of the container."""
    lines = dict(line.split(":", 1) for line in _read("/proc/meminfo").splitlines() if ":" in line)
    try:
        total, free = (int(lines[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    except (KeyError, ValueError, IndexError):
        return None, None
    limit, used = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdigit() and used.isdigit() and int(limit) < total:
        total, free = int(limit), min(free, int(limit) - int(used))
    return round(total / 1e9, 1), round(max(free, 0) / 1e9, 1)


def gpus(driver: str = "/proc/driver/nvidia/gpus") -> list[str]:
    """Name the GPUs that the NVIDIA driver knows.

    Args:
        driver: Where the driver lists them on Linux.

    Returns:
        A name each; empty without a driver.

    """
    names = []
    for path in sorted(Path(driver).glob("*/information")):
        for line in _read(str(path)).splitlines():
            if line.startswith("Model:"):
                names.append(line.split(":", 1)[1].strip())
    program = shutil.which("nvidia-smi")
    if names or program is None:
        return names
    words = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=0.5, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def python_is_right() -> bool:
    """Tell whether this Python is one that TensorFlow 2.21 is made for.

    Returns:
        True for 3.11, 3.12 and 3.13.

    """
    return (3, 11) <= sys.version_info[:2] <= (3, 13)
