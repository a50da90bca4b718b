"""Which algorithm for which size? The cheapest, by what messages, bytes and additions cost here.

    seconds = latency * messages + bytes / bandwidth + reduced / reduction speed         (`collectives.cost`)

`tfdistedu bench links` measures the three for each link. Rank 0's are sent to all when they meet: ranks that chose by
their own would choose differently near a crossing. Without measurements: what was fastest where this was written.

Costs: one dictionary look-up a call. Leaves out: links that differ within one communicator.
"""

from __future__ import annotations

import functools
from typing import Any

from tfdistedu.collectives.cost import Link
from tfdistedu.collectives.formulas import price_for

CHOICES = ("direct", "ring", "recursive_doubling", "halving_doubling", "tree")
"""The algorithms that are chosen from."""


def choose(n_ranks: int, n_bytes: int, link: str, prices: dict[str, Any] | None) -> str:
    """Choose an all-reduce.

    Args:
        n_ranks: Number of ranks.
        n_bytes: Size of each rank's message.
        link: "shared_memory" or "tcp".
        prices: From `tfdistedu bench links`: for each link `{"latency", "bandwidth", "reduce_speed"}`; or `None`.

    Returns:
        The name of an algorithm.

    Example:
        >>> choose(4, 4096, "shared_memory", None)
        'direct'

    """
    measured = (prices or {}).get(link)
    if not measured:
        return "direct"
    return _cheapest(n_ranks, n_bytes, tuple(measured[key] for key in ("latency", "bandwidth", "reduce_speed")))


@functools.lru_cache(maxsize=4096)
def _cheapest(n_ranks: int, n_bytes: int, link: tuple[float, float, float]) -> str:
    return min(CHOICES, key=lambda name: price_for(name, n_ranks).seconds(n_bytes, Link(*link)))
