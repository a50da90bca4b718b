"""Dean et al. 2012: Downpour waits for nobody, so nothing bounds how late an update comes.

    worker 7 f times slower     asynchronous: its gradients find about 7 f updates made; the others do not notice
                                bounded, ssp(2): staleness stays below 35; all go at the pace of worker 7

Cost: eight runs of 3,000 updates, a few seconds. Left out: several steps between fetches and pushes, and Adagrad on the
server, by which the paper makes such late updates bearable.

J. Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.parameter_servers.rules import asp, ssp
from tfdistedu.simulate.delays import ComputeTime
from tfdistedu.simulate.digits_model import DigitsModel
from tfdistedu.simulate.papers.paper import Paper, Progress, Row, over_seeds

N_WORKERS, SLACK = 8, 2
FACTORS = (1, 4, 16, 64)


def run(seeds: int, progress: Progress) -> list[Row]:
    """Train with a straggler that is ever slower, without and with a bound.

    Args:
        seeds: Runs of each setting.
        progress: Told what runs.

    Returns:
        Rows of `over_seeds`, with `rule` and `slower`.

    """
    model, rows = DigitsModel(), []
    for rule in (asp(), ssp(SLACK)):
        for factor in FACTORS:
            progress(f"{rule.name}, one worker {factor} times slower")
            times = ComputeTime(0.1, "lognormal", 0.3, slow={N_WORKERS - 1: float(factor)})
            row = over_seeds(
                model, seeds, None, n_workers=N_WORKERS, rule=rule, updates=3000, rate=0.05, compute=times, looks=10
            )
            rows.append({"rule": rule.name, "slower": factor, **row})
    return rows


def holds(rows: list[Row]) -> list[tuple[str, bool]]:
    """Put the claim to the test.

    Args:
        rows: What `run` returned.

    Returns:
        Sentences, each with whether it is true.

    """
    free, bounded = ([row for row in rows if row["rule"] == name] for name in ("asp", "ssp"))
    pace = [row["updates"] / row["seconds"] for row in rows]
    slowed, free_pace = pace[len(free) :], pace[: len(free)]
    # While the slow worker computes once, each of the others brings about `factor` gradients.
    late = [row["staleness_max"] > 0.5 * (N_WORKERS - 1) * row["slower"] for row in free]
    return [
        ("where nobody waits, the largest staleness grows with the straggler", all(late)),
        (f"ssp({SLACK}) holds its bound", all(r["staleness_max"] <= ssp(SLACK).bound(N_WORKERS) for r in bounded)),
        ("the straggler does not slow the others where nobody waits", free_pace[-1] > 0.8 * free_pace[0]),
        ("with a bound all go at the straggler's pace", slowed[-1] < 2 * slowed[0] / FACTORS[-1] * 1.5),
    ]


def draw(axes: Any, rows: list[Row]) -> None:
    """Draw the largest staleness over how slow the straggler is.

    Args:
        axes: Matplotlib axes.
        rows: What `run` returned.

    """
    for name, style in (("asp", "s--"), ("ssp", "o-")):
        shown = [row for row in rows if row["rule"] == name]
        label = "nobody waits" if name == "asp" else f"at most {SLACK} steps ahead"
        axes.plot([row["slower"] for row in shown], [row["staleness_max"] for row in shown], style, label=label)
    axes.set(xscale="log", yscale="log", xlabel="how many times slower one worker is", ylabel="largest staleness")
    axes.set_xticks(FACTORS, [str(factor) for factor in FACTORS])
    axes.legend()


PAPER = Paper(
    "downpour",
    "J. Dean et al., Large Scale Distributed Deep Networks, NIPS 2012",
    "Where nobody waits, a straggler slows nobody and nothing bounds how late its updates come.",
    "The shape alone: the paper's speed-ups belong to thousands of machines, and its Adagrad is not here.",
    run,
    holds,
    draw,
)
