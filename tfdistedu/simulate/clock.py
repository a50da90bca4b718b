"""How does one run ten thousand workers on one, and the same way again?

Nothing waits. What is going to happen lies in a heap, ordered by its time; the clock jumps to the next and does it.

    time   0.0   0.9   1.3   2.0          at(0.9, f)   put on the heap
           |-----f-----g-----h            run()        f, then g, then h; each may put more on it

What happens at the same time has no order in a real cluster. Here it is drawn by a seed: the same seed gives the same
run, another one another interleaving.

Cost: some microseconds an event. Left out: anything that takes real time.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from typing import Any

from tfdistedu.errors import BadInput


class Clock:
    """A clock that jumps from event to event.

    `now` is the simulated seconds since the start.

    Args:
        seed: Draws the order of what happens at the same time.

    Example:
        >>> clock, seen = Clock(seed=0), []
        >>> clock.at(2.0, seen.append, "later")
        >>> clock.at(1.0, seen.append, "sooner")
        >>> clock.run(), seen
        (2, ['sooner', 'later'])

    """

    def __init__(self, seed: int = 0):
        self.now = 0.0
        self._draw = random.Random(seed).random
        self._heap: list[tuple[float, float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._stopped = False

    def at(self, time: float, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen.

        Args:
            time: When, in simulated seconds; not before now.
            action: What.
            *arguments: Its arguments.

        """
        if not self.now <= time < math.inf:
            raise BadInput(f"Clock.at({time}): it is {self.now} already, and time is finite.")
        self._number += 1
        heapq.heappush(self._heap, (time, self._draw(), self._number, action, arguments))

    def stop(self) -> None:
        """Let nothing more happen after this event."""
        self._stopped = True

    def run(self, until: float = math.inf) -> int:
        """Let everything happen, in order.

        Args:
            until: Simulated seconds after which nothing happens any more.

        Returns:
            Number of events.

        """
        events = 0
        while self._heap and not self._stopped and self._heap[0][0] <= until:
            self.now, _, _, action, arguments = heapq.heappop(self._heap)
            action(*arguments)
            events += 1
        return events
