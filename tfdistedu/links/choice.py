"""Which algorithm for which size? The cheapest, by what messages, bytes and additions cost here.

    seconds = factor * (pieces * (overhead + latency * messages) + bytes / bandwidth + reduced / reduce_speed)

`tfdistedu bench links` measures these numbers (`links.prices`). Rank 0's are sent to all when they meet: ranks that
chose by their own would choose differently near a crossing. Without measurements: what was fastest where this was
written.

Another algorithm adds in another order, and so may give other last bits: who needs the same bits on every machine names
the algorithm.

Costs: one dictionary look-up a call. Leaves out: links that differ within one communicator.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.links.prices import costs_for

CHOICES = ("direct", "ring", "recursive_doubling", "halving_doubling", "tree")
"""The algorithms that are chosen from. The first one stays, unless another is cheaper by more than `MARGIN`."""
MARGIN = 0.1
"""No measurement on a machine that does other things is better than that."""


def choose(n_ranks: int, n_bytes: int, link: str, prices: dict[str, Any] | None) -> str:
    """Choose an all-reduce.

    Args:
        n_ranks: Number of ranks.
        n_bytes: Size of each rank's message.
        link: "shared_memory" or "tcp".
        prices: From `tfdistedu bench links`, as `tfdistedu.links.prices.costs_for` takes them; or `None`.

    Returns:
        The name of an algorithm.

    Raises:
        BadInput: These are no prices.

    Example:
        >>> choose(4, 4096, "shared_memory", None)
        'direct'
        >>> prices = {"tcp": {"4": {"latency": 1e-4, "bandwidth": 1e9, "reduce_speed": 1e10}}}
        >>> choose(4, 4096, "tcp", prices), choose(4, 1 << 20, "tcp", prices)
        ('recursive_doubling', 'direct')

    """
    costs = costs_for(prices, link, n_ranks)
    if costs is None:
        return CHOICES[0]
    seconds = {name: costs.seconds(name, n_ranks, n_bytes) for name in CHOICES}
    best = min(CHOICES, key=seconds.__getitem__)
    return best if seconds[best] < (1 - MARGIN) * seconds[CHOICES[0]] else CHOICES[0]
