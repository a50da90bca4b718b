"""How did a function end on a task?

It gave a value, or it raised, or the task ended before it answered. `LocalCluster.run` turns the last two into
`TaskFailed`, which shows each failed task's traceback under its name; `LocalCluster.start(...).outcomes()` returns all
of them as they are, for programs that break tasks on purpose.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tfdistedu.errors import TfdisteduError


class Outcome(NamedTuple):
    """How one task ended: its `value`, or `error` in one line (else `None`) with the task's own `traceback`.

    `seconds` is the time from the call to the answer.
    """

    value: Any = None
    error: str | None = None
    traceback: str = ""
    seconds: float = 0.0


class TaskFailed(TfdisteduError):
    """One or more tasks failed; the message shows their tracebacks, by task; `outcomes` says how each has ended."""

    def __init__(self, what: str, outcomes: dict[str, Outcome], running: list[str]):
        self.outcomes = outcomes
        failed = {name: outcome for name, outcome in outcomes.items() if outcome.error is not None}
        parts = [f"{what} failed on {', '.join(f'{name} ({outcome.error})' for name, outcome in failed.items())}"]
        if running:
            parts[0] += f"; {', '.join(running)} did not end within some seconds of it"
        parts += [f"{name}:\n{outcome.traceback.rstrip()}" for name, outcome in failed.items() if outcome.traceback]
        super().__init__("\n\n".join(parts))
