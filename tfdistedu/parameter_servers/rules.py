"""When may a worker go on, which gradients make an update, and how much does a late one count?

A worker *reads* the weights, computes, and *writes* a gradient. Everything that synchronous and asynchronous training
differ in is said by a few numbers, the *rule*:

    rule       waits for    gradients an update    late ones
    bsp        the update   all n                  there are none              bulk synchronous parallel
    backup     the update   the first n of n + b   dropped                     synchronous, with b backup workers [1]
    ssp        the slowest  1                      used, at most s steps ahead stale synchronous parallel [2]
    asp        nobody       1                      used, however late          asynchronous parallel (Downpour [3])
    softsync   nobody       n // k                 used                        n-softsync [4]

    worker 0  |--step 0--|--step 1--|--step 2--|......waits......|--step 3--|       ssp(2): three steps ahead of the
    worker 1  |-------------step 0------------------------------|                    slowest would be too many

`tfdistedu.parameter_servers.ledger` keeps the books by these rules.

Cost: nothing; these are numbers and pure functions. Left out: how gradients travel.

[1] J. Chen et al., "Revisiting Distributed Synchronous SGD", 2016.
[2] Q. Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013.
[3] J. Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012.
[4] W. Zhang et al., "Staleness-aware Async-SGD for Distributed Deep Learning", IJCAI 2016.
[5] S. Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay Compensation", ICML 2017.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tfdistedu.errors import BadInput


@dataclass(frozen=True)
class Rule:
    """How a server and its workers keep step, or do not.

    Attributes:
        name: What people call it.
        waits_for: Whom a worker waits for before its next step: "update", "slowest" or "nobody".
        needs: Gradients that make one update.
        slack: With "slowest": how many steps a worker may be ahead of the slowest when it starts one.
        drops_late: Whether a gradient that was computed on older weights than the newest is thrown away.

    """

    name: str
    waits_for: str = "nobody"
    needs: int = 1
    slack: int = 0
    drops_late: bool = False

    def bound(self, n_workers: int) -> float:
        """Return the largest staleness that this rule lets happen.

        A worker that starts its step c saw the others at c - s or beyond, and none of them starts a step more than s
        beyond c while it computes: each brings at most (c + s + 1) - (c - s) gradients meanwhile.

        Args:
            n_workers: Number of workers.

        Returns:
            Updates between a read and the write that belongs to it; infinite where nobody waits.

        Example:
            >>> ssp(2).bound(4), bsp(4).bound(4), asp().bound(4)
            (15, 0, inf)

        """
        if self.waits_for == "update":
            return 0
        return (n_workers - 1) * (2 * self.slack + 1) if self.waits_for == "slowest" else float("inf")


def bsp(n_workers: int) -> Rule:
    """Return the rule of synchronous training: an update is the mean of one gradient of each worker.

    Args:
        n_workers: Number of workers, at least 1.

    Returns:
        The rule.

    """
    return Rule("bsp", "update", needs=_whole("bsp(n_workers)", n_workers, 1))


def backup(n_workers: int, spare: int) -> Rule:
    """Return the rule of synchronous training that does not wait for its slowest workers.

    Args:
        n_workers: Number of workers in all, the spare ones among them.
        spare: For how many of them an update does not wait; below `n_workers`.

    Returns:
        The rule.

    """
    needs = _whole("backup(n_workers)", n_workers, 1) - _whole("backup(spare)", spare, 0)
    if needs < 1:
        raise BadInput(f"backup({n_workers}, {spare}): somebody has to be waited for; spare is below {n_workers}.")
    return Rule("backup", "update", needs=needs, drops_late=True)


def ssp(slack: int) -> Rule:
    """Return the rule of stale synchronous parallel training.

    Args:
        slack: How many steps a worker may be ahead of the slowest when it starts one; 0 or more.

    Returns:
        The rule.

    """
    return Rule("ssp", "slowest", slack=_whole("ssp(slack)", slack, 0))


def asp() -> Rule:
    """Return the rule of asynchronous training: each gradient is an update, and nobody waits.

    Returns:
        The rule.

    """
    return Rule("asp")


def softsync(n_workers: int, splits: int) -> Rule:
    """Return the rule of n-softsync: the server waits for some gradients, the workers for nothing.

    Args:
        n_workers: Number of workers.
        splits: The n of the name, 1 to `n_workers`: an update is made of `n_workers // splits` gradients.

    Returns:
        The rule.

    """
    if _whole("softsync(splits)", splits, 1) > _whole("softsync(n_workers)", n_workers, 1):
        raise BadInput(f"softsync({n_workers}, {splits}): splits is at most the number of workers.")
    return Rule("softsync", needs=n_workers // splits)


def may_start_ssp(clock: int, clocks: Iterable[int], slack: int) -> bool:
    """Tell whether a worker may start its next step under stale synchronous parallel.

    Args:
        clock: Steps that this worker has finished.
        clocks: Steps that each worker has finished, this one's among them.
        slack: How many steps it may be ahead of the slowest.

    Returns:
        Whether it may.

    Example:
        >>> may_start_ssp(3, [3, 1], slack=2), may_start_ssp(4, [4, 1], slack=2)
        (True, False)

    """
    # Step 1: look for the slowest. Its gradients are what the others must not do without for long.
    slowest = min(clocks)
    # Step 2: compare. With a slack of 0 all finish a step before anybody starts the next.
    return clock - slowest <= slack


def rate_by_staleness(rate: float, staleness: int) -> float:
    """Return the learning rate for a gradient: the staler, the smaller [4].

    Args:
        rate: The learning rate of a fresh gradient.
        staleness: Updates since the weights that it was computed on were read; 0 or more.

    Returns:
        `rate` divided by the staleness, where that is more than 1.

    Example:
        >>> rate_by_staleness(0.1, 0), rate_by_staleness(0.1, 4)
        (0.1, 0.025)

    """
    return rate / max(1, staleness)


def delay_compensated(gradient: Any, read: Any, now: Any, strength: float) -> Any:
    """Return what the gradient would about be at today's weights [5].

    The gradient at other weights is, to first order, the gradient plus Hessian times the way between them; for the
    Hessian's diagonal stands the square of the gradient.

    Args:
        gradient: The gradient at the weights that were read; an array of any shape.
        read: These weights, same shape.
        now: The weights that it is applied to, same shape.
        strength: How much of the correction is made; 0 is none.

    Returns:
        An array of the same shape and type.

    Example:
        >>> delay_compensated(2.0, read=1.0, now=1.5, strength=0.5)
        3.0

    """
    return gradient + strength * gradient * gradient * (now - read)


def _whole(what: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadInput(f"{what} must be a whole number, {least} or more, not {value!r}.")
    return value
