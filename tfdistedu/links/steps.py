"""How does one rank run its plan? The same few lines on every link.

The idea: the plan has thought of everything (slots, order, whom to wait for); the link moves bytes. What remains is a
loop over steps.

    open   copy the input into slot 0, show the window to the link
    step   give what others take from me, then take and reduce what I take from them
    close  read the result out of the slots in which the chunks lie at the end

What a link must do: `give(step)` makes `step.sends` readable and returns when `step.readers` are done, so that the
window may be written; `take(message)` returns the chunks of one message, waiting for them; `close()` returns when the
window may be given back. A link that copies in `give` has nothing to wait for.

Costs: one copy in and one out, beside what the link does. Leaves out: cutting long messages into pieces.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tfdistedu.collectives.executor import Combine
from tfdistedu.collectives.plan import Message, Plan, Step
from tfdistedu.collectives.schedule import chunk_bounds
from tfdistedu.errors import BadInput


class ExecutorLink(Protocol):
    """What `run_steps` needs of a link.

    Attributes:
        rank: The rank at this end.
        n_ranks: How many ranks there are.
    """

    rank: int
    n_ranks: int

    def open(self, window: np.ndarray, bounds: Sequence[int]) -> None:
        """Take note of the rank's window (slots × elements) and of where its chunks begin and end."""

    def give(self, step: Step) -> None:
        """Make what the step sends readable; return when its readers are done."""

    def take(self, message: Message) -> np.ndarray:
        """Return the chunks of one message, one-dimensional; wait for them."""

    def close(self) -> None:
        """Return when nobody needs the window any more."""


def run_steps(
    link: ExecutorLink,
    plan: Plan,
    array: np.ndarray,
    combine: Combine = np.add,
    bounds: Sequence[int] | None = None,
) -> np.ndarray:
    """Run one rank's part of a plan.

    Args:
        link: The rank's end of a link.
        plan: The plan, the same on all ranks.
        array: The rank's message, one-dimensional, of one length and type on all ranks. It is not changed.
        combine: What a reduction does: a function of (left, right) that returns a new array.
        bounds: Where chunks begin and end, the same on all ranks; `None` takes `chunk_bounds`.

    Returns:
        A new array: what the plain executor leaves in this rank's buffer, bit for bit.

    Raises:
        BadInput: The plan is for another number of ranks.

    Example:
        >>> from tfdistedu.collectives import make_plan, ring
        >>> from tfdistedu.links import run_ranks
        >>> plan = make_plan(ring(2))
        >>> run_ranks(lambda link, x: run_steps(link, plan, x), [np.arange(3), np.arange(3)]).results
        [array([0, 2, 4]), array([0, 2, 4])]

    """
    if plan.schedule.n_ranks != link.n_ranks:
        raise BadInput(f"the plan is for {plan.schedule.n_ranks} ranks, and the link has {link.n_ranks}.")
    if bounds is None:
        bounds = chunk_bounds(array.size, plan.schedule.n_chunks)
    # Step 1: open. Slot 0 holds the input of every chunk.
    window = np.empty((plan.n_slots, array.size), array.dtype)
    window[0] = array
    link.open(window, bounds)
    # Step 2: the rounds. Give first: a rank that takes before it gives makes everybody wait for everybody.
    for step in plan.steps[link.rank]:
        link.give(step)
        for m in step.takes:
            here = slice(bounds[m.first], bounds[m.stop])
            value = link.take(m)
            if m.reduce:
                mine = window[m.own_slot, here]
                value = combine(value, mine) if m.left else combine(mine, value)
            window[m.out_slot, here] = value
    # Step 3: close. Each chunk lies in the slot that the plan says.
    link.close()
    parts = zip(plan.final_slot[link.rank], itertools.pairwise(bounds), strict=True)
    return np.concatenate([window[slot, start:stop] for slot, (start, stop) in parts])
