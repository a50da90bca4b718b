"""Ho et al. 2013: stale synchronous parallel has its best bound inside.

    slack 0         a worker waits for the slowest after each step, and reads the weights anew
    slack large     nobody waits or reads; the copies are so old that more steps are needed
    in between      the time to a target is shortest

Workers compute on a copy of the weights, their own updates among them, and read anew when it may miss more steps than
the slack allows. A larger slack saves waiting and reading, and costs progress a step.

Cost: 40 short runs, some seconds. Left out: the paper's tasks (topic models, matrix factorisation, LASSO).

Q. Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.parameter_servers.rules import ssp
from tfdistedu.simulate.delays import ComputeTime
from tfdistedu.simulate.digits_model import DigitsModel
from tfdistedu.simulate.papers.paper import Paper, Progress, Row, draw_times, inside, over_seeds

SLACKS = (0, 1, 2, 4, 8, 16, 32, 64)
N_WORKERS, TARGET = 8, 0.93


def run(seeds: int, progress: Progress) -> list[Row]:
    """Train to the target with each slack.

    Args:
        seeds: Runs of each setting.
        progress: Told what runs.

    Returns:
        Rows of `over_seeds`, with `slack`.

    """
    model, rows = DigitsModel(), []
    for slack in SLACKS:
        progress(f"slack {slack}")
        row = over_seeds(
            model, seeds, TARGET, n_workers=N_WORKERS, rule=ssp(slack), cached=True, updates=6000, rate=0.05,
            compute=ComputeTime(0.1, "lognormal", 0.6), latency=0.02, bandwidth=1e6, looks=300,
        )  # fmt: skip
        rows.append({"slack": slack, **row})
    return rows


def holds(rows: list[Row]) -> list[tuple[str, bool]]:
    """Put the claim to the test.

    Args:
        rows: What `run` returned.

    Returns:
        Sentences, each with whether it is true.

    """
    updates = [row["updates"] for row in rows]
    pace = [row["updates"] / row["seconds"] for row in rows]
    bounded = all(row["staleness_max"] <= ssp(row["slack"]).bound(N_WORKERS) for row in rows)
    return [
        ("the shortest time to the target has a slack inside", inside(rows)),
        ("a large slack makes more updates a second than none", pace[-1] > 1.5 * pace[0]),
        ("a large slack needs more updates than none", updates[-1] > 1.5 * updates[0]),
        ("no update is staler than the bound", bounded),
    ]


def draw(axes: Any, rows: list[Row]) -> None:
    """Draw the time to the target over the slack.

    Args:
        axes: Matplotlib axes.
        rows: What `run` returned.

    """
    draw_times(axes, rows, "slack", "slack: steps that a worker may be ahead of the slowest")


PAPER = Paper(
    "stale_synchronous",
    "Q. Ho et al., More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server, NIPS 2013",
    "The time to a target has its best slack inside: neither 0 (all wait) nor large (copies too old).",
    "Which slack is best depends on rate, stragglers and network; on a fast network with equal workers 0 is best.",
    run,
    holds,
    draw,
)
