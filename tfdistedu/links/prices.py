"""What do links cost on this machine? Measured once, kept in the user's cache, and told to all by rank 0.

    tfdistedu bench links --> ~/.cache/tfdistedu/links.json --> rank 0 --at the meeting--> all ranks --> `choice`

Four numbers for each link and number of ranks (ranks share cores, so four of them pay more than two):

    seconds = factor * (pieces * (overhead + latency * messages) + bytes / bandwidth + reduced / reduce_speed)

Messages, bytes and reduced are those of `collectives.cost`. A long message is cut, and each piece pays for its
messages. The factor is the algorithm's, about 1: what a count of the busiest rank leaves out. Where ranks outnumber
cores, for one, the work of *all* ranks counts, and a ring, which keeps everybody busy, gains little over a tree.

Costs: one small file is read when rank 0 joins. Leaves out: several machines; measure there, and give `join` what you
found. Prices of another machine (a home folder on a network) are not used, nor is a file that somebody broke.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tfdistedu.collectives.cost import Link
from tfdistedu.collectives.formulas import price_for
from tfdistedu.errors import BadInput
from tfdistedu.links import pieces

FOLDER = "TFDISTEDU_CACHE"
"""The environment variable that names another folder than the user's cache."""


class Costs(NamedTuple):
    """What one link charges with one number of ranks.

    Attributes:
        latency: Seconds a message.
        bandwidth: Bytes per second.
        reduce_speed: Bytes per second that a rank reduces into its own.
        overhead: Seconds a piece, whatever the algorithm.
        factors: How many times as long as counted an algorithm takes; 1 for those that are not here.
    """

    latency: float
    bandwidth: float
    reduce_speed: float
    overhead: float = 0.0
    factors: Mapping[str, float] = MappingProxyType({})

    def seconds(self, name: str, n_ranks: int, n_bytes: int) -> float:
        """Predict an all-reduce.

        Args:
            name: The algorithm.
            n_ranks: Number of ranks.
            n_bytes: Size of each rank's message.

        Returns:
            Seconds.

        Example:
            >>> Costs(latency=1e-5, bandwidth=1e9, reduce_speed=1e9).seconds("ring", 2, 1_000_000)
            0.00152

        """
        price = price_for(name, n_ranks)
        more_pieces = max(1, -(-n_bytes // pieces.PIECE_BYTES)) - 1
        paid_again = more_pieces * (self.overhead + self.latency * price.messages)
        counted = self.overhead + price.seconds(n_bytes, Link(*self[:3])) + paid_again
        return self.factors.get(name, 1.0) * counted


def costs_for(prices: Any, link: str, n_ranks: int) -> Costs | None:
    """Find what a link charges, for the number of ranks that was measured and is nearest.

    Args:
        prices: `{"tcp": {"2": {"latency": ..., "bandwidth": ..., "reduce_speed": ..., "overhead": ...}}}`; or `None`.
        link: "shared_memory" or "tcp".
        n_ranks: Number of ranks.

    Returns:
        The costs; `None` where nothing is known.

    Raises:
        BadInput: These are no prices.

    Example:
        >>> prices = {"tcp": {"2": {"latency": 2e-5, "bandwidth": 1e9, "reduce_speed": 1e10}}}
        >>> costs_for(prices, "tcp", 3).latency, costs_for(prices, "shared_memory", 3)
        (2e-05, None)

    """
    try:
        measured = {int(ranks): Costs(**costs) for ranks, costs in ((prices or {}).get(link) or {}).items()}
        if not measured:
            return None
        costs = measured[min(measured, key=lambda ranks: (abs(math.log(ranks / n_ranks)), ranks))]
        positive = (costs.bandwidth, costs.reduce_speed, *costs.factors.values())
        if not all(math.isfinite(each) and each >= 0 for each in (*costs[:4], *positive)) or not all(positive):
            raise ValueError
    except (ValueError, TypeError, AttributeError, ZeroDivisionError):
        raise BadInput(
            f"no prices of links: {prices!r}. For each link and number of ranks they have latency and overhead in "
            "seconds, bandwidth and reduce_speed in bytes per second, all positive; `tfdistedu bench links` makes them."
        ) from None
    return costs


def prices_file() -> Path:
    """Return where prices are kept.

    Returns:
        `links.json` in `$TFDISTEDU_CACHE`, or in `tfdistedu` in the user's cache (`$XDG_CACHE_HOME`, `~/.cache`).

    """
    if os.environ.get(FOLDER):
        return Path(os.environ[FOLDER]) / "links.json"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "tfdistedu" / "links.json"


def this_machine() -> dict[str, Any]:
    """Return what prices belong to.

    Returns:
        Its name, processor and number of cores.

    """
    return {"name": platform.node(), "processor": platform.machine(), "cores": os.cpu_count()}


def store(prices: dict[str, Any]) -> Path:
    """Keep prices for all who join on this machine.

    Args:
        prices: As `costs_for` takes them.

    Returns:
        The file.

    Raises:
        BadInput: The folder cannot be written to.

    """
    file, data = prices_file(), {"machine": this_machine(), "prices": prices}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as new:
            json.dump(data, new, indent=2)
        os.replace(new.name, file)  # who reads meanwhile finds the old file or the new one
    except OSError as error:
        raise BadInput(f"cannot keep prices in {file} ({error.strerror}); name another folder in {FOLDER}.") from None
    return file


def stored() -> dict[str, Any] | None:
    """Return the prices of this machine.

    Returns:
        The prices; `None` if none were kept, or the file is of another machine, or is broken.

    """
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RuntimeError):  # no home is a RuntimeError
        data = json.loads(prices_file().read_text(encoding="utf-8"))
        if data["machine"] == this_machine():
            for link in data["prices"]:
                costs_for(data["prices"], link, 2)
            return data["prices"]
    return None
