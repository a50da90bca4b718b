"""Who is where, and what becomes of a gradient? The books of one server, kept by a rule.

    worker 3: may_start?  ----> yes, or ask again after the next write
    worker 3: write(read at version 7)  ----> applied, held, dropped (too late), or repeated (it came twice)

A ledger holds no weights, no thread and no clock: the real server and the simulator call it, each in its own time. So
what is proved about it holds for both.

Cost: a dictionary look-up a call; `slowest` looks at all workers. Left out: the weights, and how gradients travel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tfdistedu.errors import BadInput
from tfdistedu.parameter_servers.rules import Rule, may_start_ssp


@dataclass
class Ledger:
    """The books of one server: who is where, and what becomes of a gradient.

    Attributes:
        rule: The rule.
        version: Updates made so far.
        clocks: Steps that each worker has finished; who left is not among them.
        left: The clocks of those who left.
        held: Staleness of each gradient that waits for its update.
        seen: The newest sequence number of each worker; a gradient that comes again is known by it.

    """

    rule: Rule
    version: int = 0
    clocks: dict[int, int] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    held: list[int] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)

    def join(self, worker: int) -> None:
        """Let a worker take part, for the first time or again; it stands where the slowest is.

        Args:
            worker: Its number.

        """
        if worker in self.clocks:
            raise BadInput(f"worker {worker} takes part already.")
        before = self.left.pop(worker, 0)
        # Under "update": who gave a gradient to this update already must not give a second one.
        self.clocks[worker] = max(before, self.version) if self.rule.waits_for == "update" else self.slowest()

    def leave(self, worker: int) -> None:
        """Let a worker go. The slowest is then another; an update that needs all n gradients waits for its return.

        Args:
            worker: Its number.

        """
        self._check(worker)
        self.left[worker] = self.clocks.pop(worker)

    def slowest(self) -> int:
        """Return the steps that the slowest worker has finished.

        Returns:
            Steps; 0 where nobody takes part.

        """
        return min(self.clocks.values(), default=0)

    def may_start(self, worker: int) -> bool:
        """Tell whether a worker may read weights and start its next step.

        Args:
            worker: Its number.

        Returns:
            Whether it may. If not, ask again after the next write.

        """
        self._check(worker)
        if self.rule.waits_for == "update":
            return self.clocks[worker] <= self.version
        if self.rule.waits_for == "slowest":
            return may_start_ssp(self.clocks[worker], self.clocks.values(), self.rule.slack)
        return True

    def write(self, worker: int, read: int, sequence: int | None = None) -> str:
        """Book a gradient, and say what becomes of it.

        Args:
            worker: Who computed it.
            read: The version of the weights that it was computed on.
            sequence: Its number among this worker's, growing; a gradient is sent again under the same number.

        Returns:
            "repeated" (it was booked before: do nothing), "dropped" (too late), "held" (it waits for others) or
            "applied": with it the update is full. Then `version` has grown, and `held` is the staleness of each
            gradient of the update, to be emptied by `take`.

        Raises:
            BadInput: A worker that does not take part, or weights that never were.

        """
        self._check(worker)
        if not 0 <= read <= self.version:
            raise BadInput(f"worker {worker} read version {read}, and the newest is {self.version}.")
        # Step 1: once. What was sent again because an answer was lost must not count again.
        if sequence is not None:
            if sequence <= self.seen.get(worker, -1):
                return "repeated"
            self.seen[worker] = sequence
        # Step 2: the worker's clock. Under "update" it stands at the update after the one that it worked on.
        self.clocks[worker] = read + 1 if self.rule.waits_for == "update" else self.clocks[worker] + 1
        # Step 3: too late? Then the worker goes on with the newest weights at once.
        staleness = self.version - read
        if self.rule.drops_late and staleness:
            return "dropped"
        # Step 4: enough for an update?
        self.held.append(staleness)
        if len(self.held) < self.rule.needs:
            return "held"
        self.version += 1
        return "applied"

    def take(self) -> list[int]:
        """Empty the update that is full.

        Returns:
            The staleness of each of its gradients, in the order in which they came.

        """
        taken, self.held = self.held, []
        return taken

    def _check(self, worker: int) -> None:
        if worker not in self.clocks:
            raise BadInput(f"worker {worker} does not take part; join({worker}) lets it.")
