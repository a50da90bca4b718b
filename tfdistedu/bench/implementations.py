"""Who takes part in `tfdistedu bench allreduce`, and how are its ranks started?

    shared_memory, shared_memory_buffer, tcp     ours          tasks of a `LocalCluster`
    tensorflow_ring                              TensorFlow's  tasks of a `LocalCluster`
    gloo, openmpi                                peers         programs of the peers' environment, from `make peers`

One more is one more entry in `IMPLEMENTATIONS`: a function from the number of ranks (and the peers' folder) to a
context manager with `block(elements, calls, deadline)`. A peer that is not here raises `MachineCannot`, which is told
and harms nothing.

Cost: nothing here. Left out: NCCL, which needs GPUs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from tfdistedu.bench.programs import Programs
from tfdistedu.bench.ranks import block, communicator, tensorflow_ring
from tfdistedu.cluster.local import LocalCluster
from tfdistedu.errors import MachineCannot
from tfdistedu.links import new_address, new_token

RANKS = Path(block.__file__).parent
PEERS = ".venv-peers"


class Implementation(NamedTuple):
    """Its `name`; `start(n_ranks, peers)` makes its ranks; `is_peer`: it is not ours, and may be absent."""

    name: str
    start: Callable[[int, Path], AbstractContextManager[Any]]
    is_peer: bool


class Tasks(LocalCluster):
    """Ranks that are the workers of a local cluster.

    Args:
        n_ranks: Number of ranks.
        connect: Called on each; returns what turns a number of elements into work.
        *arguments: What it takes.

    """

    def __init__(self, n_ranks: int, connect: Callable[..., Any], *arguments: Any):
        super().__init__(n_ranks, echo=False, env={"TF_CPP_MIN_LOG_LEVEL": "3"})
        self._connect = connect, arguments

    def __enter__(self) -> Tasks:
        super().__enter__()
        try:
            self.run(_keep, *self._connect)
        except BaseException:
            self.close()
            raise
        return self

    def block(self, elements: int, calls: int, deadline: float) -> list[list[float]]:
        """Have all ranks run one block, as `tfdistedu.bench.programs.Programs.block` does.

        Args:
            elements: Length of the message, in float32.
            calls: Calls to time.
            deadline: Seconds that the block may take.

        Returns:
            Seconds of each call, by rank.

        """
        seconds = self.run(_block, len(self.tasks), elements, calls, deadline=deadline)
        return [seconds[task] for task in self.tasks]


def _keep(connect: Callable[..., Any], arguments: tuple) -> None:
    _block.prepare = connect(*arguments)  # what one call leaves in a task's module, the next one finds


def _block(n_ranks: int, elements: int, calls: int) -> list[float]:
    rank = int(os.environ["TFDISTEDU_TASK"].split(":")[1])
    return block.timed_block(_block.prepare(elements), rank, n_ranks, elements, calls)


def _ours(link: str, in_buffer: bool = False) -> Callable[[int, Path], Tasks]:
    def start(n_ranks: int, peers: Path) -> Tasks:
        return Tasks(n_ranks, communicator.connect, n_ranks, new_address(), new_token(), link, in_buffer)

    return start


def _tensorflow_ring(n_ranks: int, peers: Path) -> Tasks:
    return Tasks(n_ranks, tensorflow_ring.connect)


def _gloo(n_ranks: int, peers: Path) -> Programs:
    python = _python_with(peers, "torch")
    program = str(RANKS / "gloo.py")

    def commands(address: str) -> list[list[str]]:
        return [[python, program, address, str(rank), str(n_ranks)] for rank in range(n_ranks)]

    return Programs("gloo", n_ranks, commands, {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})


def _openmpi(n_ranks: int, peers: Path) -> Programs:
    python = _python_with(peers, "mpi4py")
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise MachineCannot("mpirun is not here; Debian has it: sudo apt-get install openmpi-bin libopenmpi-dev")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, timeout=20).stdout
    if "Open MPI" not in version:
        raise MachineCannot(f"{mpirun} is of another MPI: {version.strip().splitlines()[:1]}")

    def commands(address: str) -> list[list[str]]:
        words = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", str(n_ranks)]
        words += ["--mca", "mpi_yield_when_idle", "1"]
        words += ["--mca", "btl_vader_backing_directory", os.path.dirname(address)]
        return [[*words, python, str(RANKS / "openmpi.py"), address]]

    return Programs("openmpi", n_ranks, commands, {"OMP_NUM_THREADS": "1"})


def _python_with(peers: Path, package: str) -> str:
    python = peers / "bin" / "python"
    if not python.exists():
        raise MachineCannot(f"there is no environment {peers} with {package}; `make peers` makes it")
    if not list(peers.glob(f"lib/python*/site-packages/{package}")):
        raise MachineCannot(f"{peers} holds no {package}; remove it, and `make peers`")
    return str(python.absolute())


IMPLEMENTATIONS = (
    Implementation("shared_memory", _ours("shared_memory"), is_peer=False),
    Implementation("shared_memory_buffer", _ours("shared_memory", in_buffer=True), is_peer=False),
    Implementation("tcp", _ours("tcp"), is_peer=False),
    Implementation("tensorflow_ring", _tensorflow_ring, is_peer=False),
    Implementation("gloo", _gloo, is_peer=True),
    Implementation("openmpi", _openmpi, is_peer=True),
)
