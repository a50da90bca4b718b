"""How long do workers compute, and how long do messages travel?

    kind         a draw, times the mean                              like
    constant     1                                                   a machine that one dreams of
    uniform      from 1 - spread to 1 + spread                       batches of different lengths
    exponential  memoryless: most are short, a few very long         the classic of queueing theory; ignores spread
    lognormal    the logarithm is normal, with deviation spread      what clusters look like

A straggler is a worker whose draws are multiplied. The parameter server has one port: messages queue there.

    worker 0  ---latency---> |====|             ==== bytes / bandwidth at the server's port, one after another
    worker 1  ---latency---> .....|====|

Cost: draws are made a thousand at a time. Left out: links of different speeds; a network between the port and workers
that is itself too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tfdistedu.errors import BadInput

KINDS = ("constant", "uniform", "exponential", "lognormal")


@dataclass(frozen=True)
class ComputeTime:
    """How long a worker computes one gradient.

    Attributes:
        mean: Mean seconds.
        kind: One of `KINDS`.
        spread: How wide draws lie: half the width of "uniform" (below 1), the deviation of "lognormal".
        slow: How many times slower some workers are, by their number.

    """

    mean: float = 0.1
    kind: str = "lognormal"
    spread: float = 0.3
    slow: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self):
        if self.kind not in KINDS:
            raise BadInput(f"ComputeTime(kind={self.kind!r}): there are {', '.join(KINDS)}.")
        if not 0 < self.mean < float("inf"):
            raise BadInput(f"ComputeTime(mean={self.mean}): give seconds, more than 0.")
        if not 0 <= self.spread < (1 if self.kind == "uniform" else 10):
            raise BadInput(f"ComputeTime(spread={self.spread}): 0 or more, and below 1 for uniform.")
        if any(not factor > 0 for factor in self.slow.values()):
            raise BadInput(f"ComputeTime(slow={dict(self.slow)}): each factor is more than 0.")

    def drawer(self, rng: np.random.Generator) -> Callable[[int], float]:
        """Return a function that draws.

        Args:
            rng: Where chance comes from.

        Returns:
            A function from a worker's number to seconds.

        """
        draws: list[float] = []

        def draw(worker: int) -> float:
            if not draws:
                draws.extend(self._block(rng).tolist())
            return self.mean * self.slow.get(worker, 1.0) * draws.pop()

        return draw

    def _block(self, rng: np.random.Generator) -> np.ndarray:
        size = 1024
        if self.kind == "uniform":
            return rng.uniform(1 - self.spread, 1 + self.spread, size)
        if self.kind == "exponential":
            return rng.exponential(1.0, size)
        if self.kind == "lognormal":  # its mean is 1 with this location
            return rng.lognormal(-(self.spread**2) / 2, self.spread, size)
        return np.ones(size)


@dataclass
class Port:
    """The port of a parameter server: one message at a time.

    Attributes:
        latency: Seconds that a message travels.
        bandwidth: Bytes per second through the port.
        free_at: When it is free again, in simulated seconds.

    """

    latency: float = 1e-4
    bandwidth: float = 1.25e9
    free_at: float = 0.0

    def passes(self, sent: float, n_bytes: int) -> float:
        """Return when a message has passed the port. Ask in the order in which messages are sent.

        Args:
            sent: When it was sent, in simulated seconds.
            n_bytes: Its size.

        Returns:
            Simulated seconds.

        """
        self.free_at = max(sent + self.latency, self.free_at) + n_bytes / self.bandwidth
        return self.free_at
