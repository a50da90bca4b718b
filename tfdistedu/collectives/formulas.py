"""What would it cost on ten thousand ranks? No need to build the schedule: the count has a closed form.

The idea: the schedules are regular, so `tfdistedu.collectives.cost` counts the same simple numbers again and again.
Here they are, as formulas in n; a test compares them with the count for every n up to 64.

    p = the largest power of two that is not above n;  extra = 1 when n is not p;  k = ceil(log2 n)
    g = ranks in a full group, m = number of groups;   c = chunks of the chain

                         rounds            messages               bytes                   reduced
    naive                2                 2(n - 1)               2(n - 1)                n - 1
    ring                 2(n - 1)          2(n - 1)               2(n - 1)/n              (n - 1)/n
    direct               2                 2(n - 1)               2(n - 1)/n              (n - 1)/n
    tree                 2k                2k                     2k                      k
    recursive_doubling   log2 p + 2 extra  log2 p + 2 extra       log2 p + 2 extra        log2 p + extra
    halving_doubling     2 log2 p + 2 extra  (the same)           2(p - 1)/p + 2 extra    (p - 1)/p + extra
    hierarchical         2(m - 1) + 2      2(m - 1) + 2(g - 1)    2(m - 1)/m + 2(g - 1)   (m - 1)/m + g - 1
    chain                2(c + n - 2)      2(c + n - 2)           2(c + n - 2)/c          (c + n - 2)/c

One rank alone pays nothing.

Costs: constant time. Leaves out: algorithms that nobody wrote a formula for; `price_for` counts those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tfdistedu.collectives.algorithms import find
from tfdistedu.collectives.cost import Price, price
from tfdistedu.errors import BadInput

MAX_COUNTED = 256
"""The largest number of ranks for which an algorithm without a formula is counted."""


def _naive(n: int) -> Price:
    return Price(2, 2 * (n - 1), Fraction(2 * (n - 1)), Fraction(n - 1))


def _ring(n: int) -> Price:
    return Price(2 * (n - 1), 2 * (n - 1), Fraction(2 * (n - 1), n), Fraction(n - 1, n))


def _direct(n: int) -> Price:
    return Price(2, 2 * (n - 1), Fraction(2 * (n - 1), n), Fraction(n - 1, n))


def _tree(n: int) -> Price:
    k = (n - 1).bit_length()
    return Price(2 * k, 2 * k, Fraction(2 * k), Fraction(k))


def _recursive_doubling(n: int) -> Price:
    log, extra = _log_and_extra(n)
    return Price(log + 2 * extra, log + 2 * extra, Fraction(log + 2 * extra), Fraction(log + extra))


def _halving_doubling(n: int) -> Price:
    log, extra = _log_and_extra(n)
    part = Fraction(2**log - 1, 2**log)
    return Price(2 * (log + extra), 2 * (log + extra), 2 * (part + extra), part + extra)


def _hierarchical(n: int) -> Price:
    g = math.isqrt(n - 1) + 1
    m = -(-n // g)
    part = Fraction(m - 1, m)
    return Price(2 * m, 2 * (m - 1) + 2 * (g - 1), 2 * (part + g - 1), part + g - 1)


def _chain(n: int) -> Price:
    c = 4
    steps = c + n - 2
    return Price(2 * steps, 2 * steps, Fraction(2 * steps, c), Fraction(steps, c))


def _log_and_extra(n: int) -> tuple[int, int]:
    """Return log2 of the largest power of two up to n, and 1 when that is not n."""
    log = n.bit_length() - 1
    return log, int(n != 2**log)


FORMULAS: dict[str, Callable[[int], Price]] = {
    "naive": _naive,
    "ring": _ring,
    "direct": _direct,
    "tree": _tree,
    "recursive_doubling": _recursive_doubling,
    "halving_doubling": _halving_doubling,
    "hierarchical": _hierarchical,
    "chain": _chain,
}
"""The closed forms, each for the algorithm's default options and two or more ranks."""


def price_for(name: str, n_ranks: int) -> Price:
    """Return the price of an all-reduce by the algorithm's name: from its formula, or counted.

    Args:
        name: The algorithm, with its default options.
        n_ranks: Number of ranks, 1 or more.

    Returns:
        The price.

    Raises:
        BadInput: There is no such all-reduce, or it has no formula and the schedule would be too long to count.

    Example:
        >>> price_for("ring", 10_000).n_rounds
        19998

    """
    function = find(name, "all_reduce")
    formula = FORMULAS.get(function.__name__)
    if formula is None and n_ranks > MAX_COUNTED:
        raise BadInput(
            f"{function.__name__} has no closed formula, and its schedule is counted only up to {MAX_COUNTED} ranks, "
            f"not {n_ranks}."
        )
    if formula is None or n_ranks < 2:
        return price(function(n_ranks))
    return formula(n_ranks)
