"""What is simulated? Workers, a rule, times, rates, and who is away: numbers that are checked before anything runs.

    Training(8, ssp(2), updates=2000, compute=ComputeTime(slow={7: 4.0}), away=(Away(3, leaves=10.0, returns=20.0),))

Cost: nothing. Left out: the running, which is `tfdistedu.simulate.training`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tfdistedu.errors import BadInput
from tfdistedu.parameter_servers.rules import Rule
from tfdistedu.simulate.delays import ComputeTime

MOST_WORKERS = 10_000


class Away(NamedTuple):
    """A worker that leaves at some simulated second, and returns at another (infinite: never)."""

    worker: int
    leaves: float
    returns: float = float("inf")


@dataclass(frozen=True)
class Training:
    """What is simulated.

    Attributes:
        n_workers: 1 to 10,000.
        rule: One of `parameter_servers.rules`.
        updates: After how many updates it ends.
        target: Or when this accuracy is seen; `None`: not before.
        rate: The learning rate.
        batch: Examples in each gradient.
        compute: How long a gradient takes.
        latency: Seconds that a message travels.
        bandwidth: Bytes per second through the server's port.
        by_staleness: Whether the rate of each gradient is divided by its staleness.
        compensation: How far gradients are corrected for the delay; 0 is not.
        cached: Whether a worker under "ssp" computes on its copy of the weights, its own updates among them, until the
            copy could miss more steps than the slack allows, as the paper's tables do; no read is sent meanwhile.
        away: Who leaves, and returns.
        looks: How often accuracy is measured, at even distances.
        seed: Draws weights, batches, times and the order of what happens at once.

    """

    n_workers: int
    rule: Rule
    updates: int = 2000
    target: float | None = None
    rate: float = 0.1
    batch: int = 16
    compute: ComputeTime = field(default_factory=ComputeTime)
    latency: float = 1e-4
    bandwidth: float = 1.25e9
    by_staleness: bool = False
    compensation: float = 0.0
    cached: bool = False
    away: tuple[Away, ...] = ()
    looks: int = 50
    seed: int = 0

    def __post_init__(self):
        if not 1 <= self.n_workers <= MOST_WORKERS:
            raise BadInput(f"Training(n_workers={self.n_workers}): 1 to {MOST_WORKERS} workers are simulated.")
        if self.updates < 1 or self.looks < 1 or self.batch < 1:
            raise BadInput("Training: updates, looks and batch are 1 or more.")
        if self.rule.waits_for == "update" and self.rule.needs > self.n_workers:
            raise BadInput(f"Training: {self.rule} needs {self.rule.needs} workers, and there are {self.n_workers}.")
        if not (self.rate > 0 and self.latency >= 0 and self.bandwidth > 0 and self.compensation >= 0):
            raise BadInput("Training: rate and bandwidth are more than 0, latency and compensation 0 or more.")
        if self.cached and (self.rule.waits_for != "slowest" or self.compensation):
            raise BadInput("Training(cached=True): copies that may be old belong to ssp(slack), without compensation.")
        for worker, leaves, returns in self.away:
            if not (0 <= worker < self.n_workers and 0 <= leaves < returns):
                raise BadInput(f"Training(away={worker, leaves, returns}): no such worker, or it returns too soon.")
