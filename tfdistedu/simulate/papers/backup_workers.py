"""Chen et al. 2016: of n workers, wait for the first n - b; the best b lies inside.

    b = 0         each update waits for the slowest of all
    b = n - 2     an update comes soon, and is made of so few gradients that it is mostly noise
    in between    the time to a target is shortest

Cost: 30 runs with gradients of one example, some ten seconds. Left out: the paper's network (Inception on ImageNet) and
its measured times of 100 machines; here they are lognormal.

J. Chen, X. Pan, R. Monga, S. Bengio, R. Jozefowicz, "Revisiting Distributed Synchronous SGD", 2016.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.parameter_servers.rules import backup
from tfdistedu.simulate.delays import ComputeTime
from tfdistedu.simulate.digits_model import DigitsModel
from tfdistedu.simulate.papers.paper import Paper, Progress, Row, draw_times, inside, over_seeds

N_WORKERS, TARGET = 32, 0.93
SPARES = (0, 2, 8, 16, 24, 30)


def run(seeds: int, progress: Progress) -> list[Row]:
    """Train to the target with each number of backup workers.

    Args:
        seeds: Runs of each setting.
        progress: Told what runs.

    Returns:
        Rows of `over_seeds`, with `backup`.

    """
    model, rows = DigitsModel(batch=1), []
    for spare in SPARES:
        progress(f"{spare} of {N_WORKERS} are backup")
        row = over_seeds(
            model, seeds, TARGET, n_workers=N_WORKERS, rule=backup(N_WORKERS, spare), updates=2000, rate=0.2, batch=1,
            compute=ComputeTime(0.1, "lognormal", 0.5), looks=200,
        )  # fmt: skip
        rows.append({"backup": spare, **row})
    return rows


def holds(rows: list[Row]) -> list[tuple[str, bool]]:
    """Put the claim to the test.

    Args:
        rows: What `run` returned.

    Returns:
        Sentences, each with whether it is true.

    """
    each = [row["seconds"] / row["updates"] for row in rows]
    return [
        ("the shortest time to the target has a number of backup workers inside", inside(rows)),
        ("more backup workers, and an update takes less time", each == sorted(each, reverse=True)),
        ("with almost only backup workers more updates are needed", rows[-1]["updates"] > 2 * rows[0]["updates"]),
        ("no gradient that counts is stale", all(row["staleness_max"] == 0 for row in rows)),
    ]


def draw(axes: Any, rows: list[Row]) -> None:
    """Draw the time to the target over the number of backup workers.

    Args:
        axes: Matplotlib axes.
        rows: What `run` returned.

    """
    draw_times(axes, rows, "backup", f"backup workers, of {N_WORKERS}")


PAPER = Paper(
    "backup_workers",
    "J. Chen et al., Revisiting Distributed Synchronous SGD, 2016",
    "Of n workers an update waits for the first n - b. The time to a target has its best b inside.",
    "Which b is best belongs to the machines' times and the batch of a worker; here a gradient has one example, so "
    "that noise shows with so few workers.",
    run,
    holds,
    draw,
)
