"""How does training go on one to ten thousand workers, under each rule, with stragglers and with workers that leave?

    worker  may I start? --yes--> ask the server    read           compute             write
            (the ledger)             |---port---> version v ---latency---> t drawn ---port---> applied, held, dropped
               ^                                                                             |
               +------- no: parked until an update or the slowest moves <-------------------+

Everything but time is real: the gradients, the digits, the rule's books (`parameter_servers.ledger`, the very
ones of the real server). So the run gives accuracy against simulated time, and the staleness of each gradient.

Cost: some 100 microseconds an update. Left out: more than one parameter server; gradients that are compressed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tfdistedu.errors import TfdisteduError
from tfdistedu.parameter_servers.ledger import Ledger
from tfdistedu.parameter_servers.rules import delay_compensated, rate_by_staleness
from tfdistedu.simulate.clock import Clock
from tfdistedu.simulate.delays import Port
from tfdistedu.simulate.digits_model import N_WEIGHTS, DigitsModel
from tfdistedu.simulate.setting import Training


class Look(NamedTuple):
    """What was seen at some moment: simulated `seconds`, `updates` made, `accuracy` on the test digits."""

    seconds: float
    updates: int
    accuracy: float


@dataclass
class Report:
    """What came of it.

    Attributes:
        seconds: Simulated seconds in all.
        updates: Updates made.
        applied: Gradients in them.
        dropped: Gradients that came too late, or were lost with their worker.
        staleness: How many gradients were applied with which staleness.
        curve: Looks at the accuracy, from before the first update to the end.
        waited: Simulated seconds that workers stood parked, all together.
        weights: The weights at the end, float32 [2410].

    """

    seconds: float = 0.0
    updates: int = 0
    applied: int = 0
    dropped: int = 0
    staleness: Counter[int] = field(default_factory=Counter)
    curve: list[Look] = field(default_factory=list)
    waited: float = 0.0
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def staleness_mean(self) -> float:
        """Mean staleness of the gradients that were applied."""
        return sum(s * count for s, count in self.staleness.items()) / max(1, self.applied)

    @property
    def staleness_max(self) -> int:
        """Largest staleness of a gradient that was applied."""
        return max(self.staleness, default=0)

    @property
    def accuracy(self) -> float:
        """Accuracy at the end."""
        return self.curve[-1].accuracy

    def seconds_to(self, accuracy: float) -> float:
        """Return when an accuracy was first seen.

        Args:
            accuracy: From 0 to 1.

        Returns:
            Simulated seconds; infinite if it never was.

        """
        return next((look.seconds for look in self.curve if look.accuracy >= accuracy), float("inf"))


def simulate(
    training: Training, model: DigitsModel | None = None, on_look: Callable[[Look], None] | None = None
) -> Report:
    """Run a training on the virtual clock.

    Args:
        training: What is simulated.
        model: The network and its data; `None` makes one of `training.batch` examples a gradient.
        on_look: Called at each look, for progress.

    Returns:
        What came of it. The same training gives the same report, bit for bit.

    Raises:
        TfdisteduError: Nobody can go on; the message says who waits for whom.

    Example:
        >>> from tfdistedu.parameter_servers.rules import asp
        >>> report = simulate(Training(n_workers=4, rule=asp(), updates=400))
        >>> 2 < report.staleness_mean < 4
        True

    """
    return _Simulation(training, model or DigitsModel(training.batch), on_look).run()


@dataclass
class _Copy:
    """A worker's copy of the weights: its `version`, and how many steps of everybody (`steps`) it has for sure."""

    weights: np.ndarray
    version: int
    steps: int


class _Simulation:
    """The events of one run. Each method is an event, or what two of them share."""

    def __init__(self, training: Training, model: DigitsModel, on_look: Callable[[Look], None] | None):
        self.training, self.model, self.on_look = training, model, on_look
        self.rng = np.random.default_rng(training.seed)
        self.clock = Clock(training.seed)
        self.port = Port(training.latency, training.bandwidth)
        self.compute_time = training.compute.drawer(np.random.default_rng([training.seed, 1]))
        self.ledger = Ledger(training.rule)
        self.report = Report()
        self.weights = model.first_weights(self.rng)
        self.sum = np.zeros(N_WEIGHTS, np.float32)  # of the gradients that wait for their update
        self.copies: dict[int, _Copy] = {}
        self.parked: dict[int, float] = {}  # since when each waits
        self.moved: tuple[int, int] = (0, 0)  # version and slowest when the parked were last asked
        self.life = [0] * training.n_workers  # what belongs to an earlier life of a worker counts no more
        self.look_at = 0.0
        self.done = False

    def run(self) -> Report:
        self.look()
        for worker in range(self.training.n_workers):
            self.ledger.join(worker)
        for worker in range(self.training.n_workers):
            self.clock.at(0.0, self.ask, worker)
        for worker, leaves, returns in self.training.away:
            self.clock.at(leaves, self.leave, worker)
            if returns < float("inf"):
                self.clock.at(returns, self.come_back, worker)
        self.clock.run()
        if not self.done:
            absent = ", ".join(str(worker) for worker in sorted(self.ledger.left)[:10])
            raise TfdisteduError(
                f"after {self.clock.now:g} simulated seconds and {self.ledger.version} updates nobody can go on: "
                f"{len(self.parked)} workers wait for an update of {self.training.rule.needs} gradients, and worker(s) "
                f"{absent} left for good."
            )
        self.report.seconds, self.report.updates = self.clock.now, self.ledger.version
        self.report.weights = self.weights
        return self.report

    def ask(self, worker: int) -> None:
        if not self.ledger.may_start(worker):
            self.parked[worker] = self.clock.now
        elif (
            worker in self.copies and self.ledger.clocks[worker] - self.copies[worker].steps <= self.training.rule.slack
        ):
            self.compute(worker, self.clock.now, self.copies[worker].weights, self.copies[worker].version)
        else:
            read_at = self.port.passes(self.clock.now, 4 * N_WEIGHTS)
            self.clock.at(read_at, self.read, worker, self.life[worker])

    def read(self, worker: int, life: int) -> None:
        if life != self.life[worker]:
            return
        if self.training.cached:
            self.copies[worker] = _Copy(self.weights.copy(), self.ledger.version, self.ledger.slowest())
        self.compute(worker, self.clock.now + self.training.latency, self.weights, self.ledger.version)

    def compute(self, worker: int, starts: float, weights: np.ndarray, version: int) -> None:
        # The gradient is computed now, of the weights as they stand; it arrives when its time has passed.
        gradient = self.model.gradient(weights, self.rng)
        seen = weights.copy() if self.training.compensation else None
        sent_at = starts + self.compute_time(worker)
        self.clock.at(sent_at, self.send, worker, self.life[worker], version, gradient, seen)

    def send(self, worker: int, life: int, version: int, gradient: np.ndarray, seen: np.ndarray | None) -> None:
        if life == self.life[worker]:
            arrives_at = self.port.passes(self.clock.now, 4 * N_WEIGHTS)
            self.clock.at(arrives_at, self.write, worker, life, version, gradient, seen)

    def write(self, worker: int, life: int, version: int, gradient: np.ndarray, seen: np.ndarray | None) -> None:
        if life != self.life[worker]:
            return
        staleness = self.ledger.version - version
        fate = self.ledger.write(worker, version)
        if fate == "dropped":
            self.report.dropped += 1
        else:
            if seen is not None:
                gradient = delay_compensated(gradient, seen, self.weights, self.training.compensation)
            rate = self.training.rate
            change = (rate_by_staleness(rate, staleness) if self.training.by_staleness else rate) * gradient
            self.sum += change
            if worker in self.copies:  # it sees its own updates: the copy misses one less
                self.copies[worker].weights -= change
                self.copies[worker].version += 1
        if fate == "applied":
            self.apply()
        self.ask(worker)
        self.ask_the_parked()

    def apply(self) -> None:
        taken = self.ledger.take()
        self.weights -= self.sum / len(taken)
        self.sum[:] = 0
        self.report.applied += len(taken)
        self.report.staleness.update(taken)
        version, last = self.ledger.version, self.training.updates
        if version >= self.look_at or version == last:
            self.look()
        if version == last or (self.training.target is not None and self.report.accuracy >= self.training.target):
            self.done = True
            self.clock.stop()

    def look(self) -> None:
        with np.errstate(all="ignore"):  # weights that ran away are seen as an accuracy of chance
            accuracy = self.model.accuracy(self.weights)
        self.report.curve.append(Look(self.clock.now, self.ledger.version, accuracy))
        self.look_at += self.training.updates / self.training.looks
        if self.on_look is not None:
            self.on_look(self.report.curve[-1])

    def ask_the_parked(self) -> None:
        if not self.parked:
            return
        moved = (self.ledger.version, self.ledger.slowest())
        if moved != self.moved:
            self.moved = moved
            for worker in [w for w in self.parked if self.ledger.may_start(w)]:
                self.report.waited += self.clock.now - self.parked.pop(worker)
                self.ask(worker)

    def leave(self, worker: int) -> None:
        self.ledger.leave(worker)
        self.copies.pop(worker, None)
        self.life[worker] += 1
        self.report.dropped += self.parked.pop(worker, None) is None  # what it was computing is lost
        self.ask_the_parked()

    def come_back(self, worker: int) -> None:
        self.ledger.join(worker)
        self.ask(worker)
