"""What do messages, bytes and additions cost here, and how well do these prices predict an all-reduce?

Ranks on this machine run every all-reduce that there is at several sizes, in turns. Four numbers, and a factor for each
algorithm, are fitted to half of the sizes (`tfdistedu.links.prices` has the formula); the other half is predicted, and
compared with what was measured:

    sizes     4 KiB   16 KiB   64 KiB   256 KiB   1 MiB   2 MiB   4 MiB   8 MiB   16 MiB   32 MiB
    fitted      x                x                  x               x               x
    predicted            x                x                 x               x                x

The speeds of additions and of copies are timed by themselves, on all ranks at once: in most schedules bytes and
additions grow alike, so no fit could tell them apart, and no link is faster than a copy. The rest is fitted to small
*relative* errors, and outliers count little: a call of 4 KiB matters as much as one of 16 MiB, and a busy moment of the
machine matters little.

Cost: about a minute with two and four ranks. Left out: several machines; types other than float32.

Source: for the fit, E. J. Schlossmacher, "An iterative technique for absolute deviations curve fitting", Journal of the
American Statistical Association 68 (1973).
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfdistedu.cluster.local import LocalCluster
from tfdistedu.collectives import ALGORITHMS
from tfdistedu.errors import BadInput, TfdisteduError
from tfdistedu.links import join, new_address, new_token
from tfdistedu.links.choice import choose
from tfdistedu.links.prices import Costs
from tfdistedu.links.start import LINKS

RANKS = (2, 4)
FITTED = (4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20)
PREDICTED = (16 << 10, 256 << 10, 2 << 20, 8 << 20, 32 << 20)
LARGE = 1 << 20  # bytes from which predictions are judged
_FREE = math.inf  # bytes per second of what costs nothing
_BLOCK_SECONDS, _MOST = 0.02, 50  # of one algorithm's calls in its turn


class Row(NamedTuple):
    """One algorithm at one size: `seconds` measured (the median), `predicted`, and whether the fit had seen it."""

    link: str
    ranks: int
    algorithm: str
    bytes: int
    seconds: float
    predicted: float
    fitted: bool

    @property
    def error(self) -> float:
        """The relative error: 0.1 for a prediction that is a tenth too long."""
        return self.predicted / self.seconds - 1


class Result(NamedTuple):
    """All rows; `prices` as `tfdistedu.links.prices` keeps them."""

    rows: list[Row]
    prices: dict[str, dict[str, dict[str, Any]]]

    def judge(self, link: str, ranks: int) -> tuple[float, Row]:
        """Tell how good the predictions are, for sizes that were not fitted, from 1 MiB.

        Args:
            link: The link.
            ranks: Number of ranks.

        Returns:
            The median of the errors' sizes, and the worst row.

        Raises:
            BadInput: No such size was measured.

        """
        rows = [r for r in self.rows if (r.link, r.ranks) == (link, ranks) and not r.fitted and r.bytes >= LARGE]
        if not rows:
            raise BadInput("no size from 1 MiB was left to predict.")
        return statistics.median(abs(row.error) for row in rows), max(rows, key=lambda row: abs(row.error))

    def chosen(self, link: str, ranks: int) -> dict[int, str]:
        """Return what would be chosen at each size.

        Args:
            link: The link.
            ranks: Number of ranks.

        Returns:
            The algorithm by bytes.

        """
        sizes = sorted({row.bytes for row in self.rows})
        return {size: choose(ranks, size, link, self.prices) for size in sizes}

    def as_json(self) -> dict[str, Any]:
        """Return plain data.

        Returns:
            `rows`, `prices`, and `errors`: for each link and number of ranks, the median and the worst.

        """
        errors = []
        for link, ranks in dict.fromkeys((row.link, row.ranks) for row in self.rows):
            median, worst = self.judge(link, ranks)
            errors.append({"link": link, "ranks": ranks, "median": median, "worst": worst.error,
                           "worst_algorithm": worst.algorithm, "worst_bytes": worst.bytes})  # fmt: skip
        return {"rows": [{**row._asdict(), "error": row.error} for row in self.rows], "prices": self.prices,
                "errors": errors}  # fmt: skip


def measure(
    ranks: Sequence[int] = RANKS,
    rounds: int = 3,
    *,
    fitted: Sequence[int] = FITTED,
    predicted: Sequence[int] = PREDICTED,
    deadline: float = 60.0,
    on_block: Callable[[str], None] = lambda text: None,
) -> Result:
    """Time all algorithms on both links, fit, and predict.

    Args:
        ranks: Numbers of ranks, each 2 or more.
        rounds: Turns that each algorithm takes at each size.
        fitted: Bytes of messages to fit to; multiples of 4.
        predicted: Bytes of messages to predict.
        deadline: Seconds for each size.
        on_block: Called with what comes, for progress.

    Returns:
        Measured and predicted times, and the prices.

    Raises:
        BadInput: Ranks, rounds or sizes that cannot be measured.
        TfdisteduError: A rank failed.

    """
    if not ranks or min(ranks) < 2 or len(set(ranks)) < len(ranks):
        raise BadInput(f"bench links: numbers of ranks are 2 or more, each once; not {list(ranks)}.")
    if rounds < 1:
        raise BadInput(f"bench links: at least 1 round, not {rounds}.")
    sizes = sorted({*fitted, *predicted})
    if not fitted or any(size < 4 or size % 4 for size in sizes):
        raise BadInput(f"bench links: sizes are whole float32 numbers of 4 bytes, some of them to fit; not {sizes}.")
    names = sorted(name for name, function in ALGORITHMS.items() if function.goal == "all_reduce")
    result = Result([], {link: {} for link in LINKS})
    for n in ranks:
        on_block(f"starting {n} ranks")
        with LocalCluster(n, echo=False, env={"TF_CPP_MIN_LOG_LEVEL": "3"}, deadline=deadline) as cluster:
            cluster.run(_join, n, new_address(), new_address(), new_token())
            for link in LINKS:
                speeds = [min(each) for each in zip(*cluster.run(_speeds, link).values(), strict=True)]
                seconds: dict[tuple[str, int], float] = {}
                for size in sizes:
                    on_block(f"{link}, {n} ranks, {size} bytes")
                    by_rank = list(cluster.run(_times, link, size // 4, names, rounds).values())
                    for name in names:
                        seconds[name, size] = statistics.median(map(max, *(times[name] for times in by_rank)))
                samples = [(name, size, took) for (name, size), took in seconds.items() if size in fitted]
                costs = fit(samples, n, *speeds)
                result.prices[link][str(n)] = costs._asdict()
                for (name, size), took in seconds.items():
                    result.rows.append(
                        Row(link, n, name, size, took, costs.seconds(name, n, size), size in fitted)
                    )  # fmt: skip
            cluster.run(_leave)
    return result


def fit(samples: Iterable[tuple[str, int, float]], n_ranks: int, reduce_speed: float, copy_speed: float) -> Costs:
    """Find latency, bandwidth and overhead, none of them negative, and each algorithm's factor.

    Args:
        samples: (algorithm, bytes, seconds).
        n_ranks: Number of ranks.
        reduce_speed: Bytes per second of additions; it is given.
        copy_speed: Bytes per second of copies: the most that the bandwidth can be.

    Returns:
        The costs; the factors' geometric mean is 1.

    Example:
        >>> true = Costs(latency=2e-5, bandwidth=4e9, reduce_speed=1e10, overhead=1e-5)
        >>> cases = [(name, size) for name in ("ring", "tree") for size in (4096, 1 << 20, 1 << 24)]
        >>> found = fit([(*case, true.seconds(case[0], 4, case[1])) for case in cases], 4, 1e10, 1e11)
        >>> [round(each / wanted, 3) for each, wanted in zip(found[:4], true)]
        [1.0, 1.0, 1.0, 1.0]

    """
    samples = list(samples)
    factors = dict.fromkeys((name for name, _, _ in samples), 1.0)
    for _ in range(10):
        # Step 1: the four numbers, with the factors as they are.
        scaled = [(name, size, took / factors[name]) for name, size, took in samples]
        costs = _fit_costs(scaled, n_ranks, Costs(0.0, copy_speed, reduce_speed))
        # Step 2: the factors, with the four numbers as they are. Their common part belongs to the numbers.
        ratios: dict[str, list[float]] = {name: [] for name in factors}
        for name, size, took in samples:
            ratios[name].append(took / costs.seconds(name, n_ranks, size))
        factors = {name: statistics.median(each) for name, each in ratios.items()}
        mean = statistics.geometric_mean(factors.values())
        factors = {name: factor / mean for name, factor in factors.items()}
    return costs._replace(factors=factors)


def _fit_costs(samples: list[tuple[str, int, float]], n_ranks: int, known: Costs) -> Costs:
    # Step 1: one line for each sample, divided by what was measured: then all errors are relative.
    units = [Costs(1.0, _FREE, _FREE, 0.0), Costs(0.0, 1.0, _FREE, 0.0), Costs(0.0, _FREE, _FREE, 1.0)]
    lines = np.array([[unit.seconds(name, n_ranks, size) / took for unit in units] for name, size, took in samples])
    rest = np.array([1 - known.seconds(name, n_ranks, size) / took for name, size, took in samples])
    # Step 2: least absolute errors. Squares are weighted anew by the last errors, so that an outlier pulls little.
    weights = np.ones(len(samples))
    for _ in range(20):
        found = _without_negatives(lines * weights[:, None], rest * weights)
        weights = 1 / np.sqrt(np.maximum(np.abs(lines @ found - rest), 1e-3))
    latency, per_byte, overhead = found.tolist()
    return Costs(latency, 1 / (1 / known.bandwidth + per_byte), known.reduce_speed, overhead)


def _without_negatives(lines: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Solve least squares with all unknowns 0 or more: there are three, so each choice of those that are 0 is tried."""
    best, smallest = np.zeros(lines.shape[1]), float(np.sum(wanted**2))
    for used in itertools.product((False, True), repeat=lines.shape[1]):
        columns = np.flatnonzero(used)
        if not len(columns):
            continue
        part, *_ = np.linalg.lstsq(lines[:, columns], wanted, rcond=None)
        error = float(np.sum((lines[:, columns] @ part - wanted) ** 2))
        if (part >= 0).all() and error < smallest:
            best, smallest = np.zeros(lines.shape[1]), error
            best[columns] = part
    return best


def _join(n_ranks: int, first: str, second: str, token: str) -> None:
    rank = int(os.environ["TFDISTEDU_TASK"].rpartition(":")[2])
    _join.comms = {
        link: join(rank, n_ranks, address, token, link, prices={})
        for link, address in zip(LINKS, (first, second), strict=True)
    }


def _leave() -> None:
    for comm in _join.comms.values():
        comm.close()


def _speeds(link: str) -> tuple[float, float]:
    """Time additions and copies in the cache, on all ranks at once: bytes per second."""
    n_bytes = 128 << 10
    one, other, out = (np.zeros(n_bytes // 4, np.float32) for _ in range(3))
    speeds = []
    for work in (lambda: np.add(one, other, out=out), lambda: np.copyto(out, one)):
        _join.comms[link].barrier()
        taken = []
        for _ in range(51):
            start = time.perf_counter()
            for _ in range(20):
                work()
            taken.append((time.perf_counter() - start) / 20)
        speeds.append(n_bytes / statistics.median(taken))
    return speeds[0], speeds[1]


def _times(link: str, elements: int, names: list[str], rounds: int) -> dict[str, list[float]]:
    """Time calls of all algorithms in turn; the sum has to be right first."""
    comm = _join.comms[link]
    data, taken = np.empty(elements, np.float32), {name: [] for name in names}
    first = np.zeros(len(names))
    for number, name in enumerate(names):
        data.fill(1)
        comm.all_reduce(data, out=data, algorithm=name)
        if not (data == comm.n_ranks).all():
            raise TfdisteduError(f"rank {comm.rank}: {name} over {link} gives a wrong sum of {elements} elements.")
        data.fill(0)
        start = time.perf_counter()
        comm.all_reduce(data, out=data, algorithm=name)
        first[number] = time.perf_counter() - start
    # All ranks have to make the same number of calls, so they agree on how long one takes.
    longest = comm.all_reduce(first, "max")
    for _ in range(rounds):
        for name, took in zip(names, longest.tolist(), strict=True):
            comm.barrier()
            for _ in range(max(2, min(_MOST, int(_BLOCK_SECONDS / took)))):
                start = time.perf_counter()
                comm.all_reduce(data, out=data, algorithm=name)
                taken[name].append(time.perf_counter() - start)
    return taken
