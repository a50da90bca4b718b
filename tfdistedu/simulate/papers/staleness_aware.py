"""Zhang et al. 2016: many asynchronous learners fail with a fixed rate, and train with rate / staleness.

    free equal learners, n of them        mean staleness n - 1
    rate fixed                            few learn, many fall to chance
    rate / staleness of each gradient     all learn

Why: the gradients of n learners that started from the same weights are applied one after another, so about n of them
go the same way before anybody sees what they did: together a step of n times the rate.

Cost: 24 runs of 4,000 updates, some seconds each ten. Left out: the paper's networks (CIFAR-10, ImageNet), and its
protocol in which a server first collects n / k gradients; `tfdistedu simulate training --rules softsync:K` has that.

W. Zhang, S. Gupta, X. Lian, J. Liu, "Staleness-aware Async-SGD for Distributed Deep Learning", IJCAI 2016.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.parameter_servers.rules import asp
from tfdistedu.simulate.digits_model import DigitsModel
from tfdistedu.simulate.papers.paper import Paper, Progress, Row, over_seeds

N_LEARNERS = (1, 2, 8, 30)
RATE, UPDATES, CHANCE = 0.2, 4000, 0.25


def run(seeds: int, progress: Progress) -> list[Row]:
    """Train with each number of learners, with both rates.

    Args:
        seeds: Runs of each setting.
        progress: Told what runs.

    Returns:
        Rows of `over_seeds`, with `learners` and `rate` ("fixed" or "rate / staleness").

    """
    model, rows = DigitsModel(), []
    for divided in (False, True):
        for n in N_LEARNERS:
            rate = "rate / staleness" if divided else "fixed"
            progress(f"{n} learners, {rate}")
            row = over_seeds(
                model, seeds, None, n_workers=n, rule=asp(), updates=UPDATES, rate=RATE, by_staleness=divided, looks=10
            )
            rows.append({"learners": n, "rate": rate, **row})
    return rows


def holds(rows: list[Row]) -> list[tuple[str, bool]]:
    """Put the claim to the test.

    Args:
        rows: What `run` returned.

    Returns:
        Sentences, each with whether it is true.

    """
    fixed, divided = ([row for row in rows if row["rate"] == rate] for rate in ("fixed", "rate / staleness"))
    # The first n gradients find fewer before them, (n - 1) / 2 on average: that share is allowed for, and 2 %.
    off = [abs(row["staleness_mean"] - (n - 1)) for row, n in zip(fixed, N_LEARNERS, strict=True)]
    allowed = [n * (n - 1) / 2 / UPDATES + 0.02 * n for n in N_LEARNERS]
    return [
        ("the mean staleness of n learners is n - 1", all(a <= b for a, b in zip(off, allowed, strict=True))),
        ("one learner trains with either rate", min(fixed[0]["accuracy"], divided[0]["accuracy"]) > 0.93),
        (f"{N_LEARNERS[-1]} learners with a fixed rate fail", fixed[-1]["accuracy"] < CHANCE),
        (f"{N_LEARNERS[-1]} learners with rate / staleness train", divided[-1]["accuracy"] > 0.93),
    ]


def draw(axes: Any, rows: list[Row]) -> None:
    """Draw accuracy over learners.

    Args:
        axes: Matplotlib axes.
        rows: What `run` returned.

    """
    for rate, style in (("fixed", "s--"), ("rate / staleness", "o-")):
        values = [row["accuracy"] for row in rows if row["rate"] == rate]
        axes.plot(range(len(N_LEARNERS)), values, style, label=rate)
    axes.set_xticks(range(len(N_LEARNERS)), [str(n) for n in N_LEARNERS])
    axes.set(xlabel="asynchronous learners", ylabel="accuracy", ylim=(0, 1))
    axes.legend(loc="lower left")


PAPER = Paper(
    "staleness_aware",
    "W. Zhang et al., Staleness-aware Async-SGD for Distributed Deep Learning, IJCAI 2016",
    "Mean staleness is n - 1. With a fixed rate many learners fail; with rate / staleness they train.",
    "At which n a fixed rate fails belongs to the rate, the network and the data; here 8 still train, and 30 do not.",
    run,
    holds,
    draw,
)
