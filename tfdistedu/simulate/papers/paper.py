"""What is a paper, to a program that checks it?

    settings --simulate, several seeds--> rows --holds--> sentences, true or not
                                           |----draw----> a figure

A `Paper` is data; what differs is in three functions of its module. Rows are medians over seeds, since a single run of
noisy training shows anything.

Cost: seeds times settings runs. Left out: error bars beyond the smallest and the largest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from tfdistedu.simulate.digits_model import DigitsModel
from tfdistedu.simulate.setting import Training
from tfdistedu.simulate.training import Report, simulate

Row = dict[str, Any]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Paper:
    """A claim, and how it is put to the test.

    Attributes:
        name: What the command calls it.
        source: Authors, title, year.
        claim: The shape or number that is reproduced.
        note: What does not carry over.
        run: From the number of seeds and a function that is told of progress, to rows.
        holds: From rows to sentences, each with whether it is true of them.
        draw: From matplotlib axes and rows, to a picture.

    """

    name: str
    source: str
    claim: str
    note: str
    run: Callable[[int, Progress], list[Row]]
    holds: Callable[[list[Row]], list[tuple[str, bool]]]
    draw: Callable[[Any, list[Row]], None]


def over_seeds(model: DigitsModel, seeds: int, target: float | None, **setting: Any) -> Row:
    """Simulate one setting with several seeds.

    Args:
        model: The network and its data.
        seeds: How many; 0, 1, 2 and so on are taken.
        target: The accuracy that a run is to reach, and at which it ends; `None`: it runs to its last update.
        **setting: What else `Training` is given.

    Returns:
        `seconds` (until the target; infinite if it was not reached by half of them), `least` and `most` (over seeds),
        `updates`, `accuracy`, `staleness_mean`: medians; `staleness_max`: the largest.

    """
    reports: list[Report] = [simulate(Training(seed=seed, target=target, **setting), model) for seed in range(seeds)]
    times = [report.seconds if target is None else report.seconds_to(target) for report in reports]
    return {
        "seconds": median(times),
        "least": min(times),
        "most": max(times),
        "updates": median(report.updates for report in reports),
        "accuracy": median(report.accuracy for report in reports),
        "staleness_mean": median(report.staleness_mean for report in reports),
        "staleness_max": max(report.staleness_max for report in reports),
    }


def inside(rows: list[Row], key: str = "seconds") -> bool:
    """Tell whether the smallest value stands neither first nor last, and clearly below both.

    Args:
        rows: In the order of what was varied.
        key: What is compared.

    Returns:
        Whether the best lies inside: at most 0.85 of either end, more than the seeds' medians differ by chance.

    Example:
        >>> inside([{"seconds": 3.0}, {"seconds": 1.0}, {"seconds": 2.0}]), inside([{"seconds": 3.0}, {"seconds": 1.0}])
        (True, False)

    """
    values = [row[key] for row in rows]
    return min(values) <= 0.85 * min(values[0], values[-1])


def draw_times(axes: Any, rows: list[Row], key: str, label: str) -> None:
    """Draw the time to the target over what was varied, with the smallest and largest over seeds.

    Args:
        axes: Matplotlib axes.
        rows: Rows of `over_seeds`, each with `key` added; a time that is infinite is left out.
        key: What was varied.
        label: How the axis calls it.

    """
    shown = [row for row in rows if row["seconds"] < float("inf")]
    at = [rows.index(row) for row in shown]
    axes.plot(at, [row["seconds"] for row in shown], "o-")
    ends = [(row["least"], row["most"] if row["most"] < float("inf") else row["seconds"]) for row in shown]
    axes.fill_between(at, *zip(*ends, strict=True), alpha=0.2)
    axes.set_xticks(range(len(rows)), [str(row[key]) for row in rows])
    axes.set(xlabel=label, ylabel="simulated seconds to the target", ylim=(0, None))
