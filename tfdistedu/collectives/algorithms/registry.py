"""How does the rest of the package find an algorithm? By the name of its function, in one dictionary.

The idea: an algorithm is one function from a number of ranks to a schedule. The decorator `algorithm` writes it into
`ALGORITHMS`; the verifier, the executor, the cost model, the pictures and the command line look there.

    @algorithm                      "ring" --> ring(n_ranks) --> Schedule --> verify, run, draw, price
    def ring(n_ranks): ...

Costs: nothing. Leaves out: what the algorithms do; see the other modules of this folder.
"""

from __future__ import annotations

import difflib
import functools
import operator
from collections.abc import Callable
from typing import Any

from tfdistedu.collectives.schedule import GOALS, Schedule
from tfdistedu.errors import BadInput

ALGORITHMS: dict[str, Callable[..., Schedule]] = {}
"""All algorithms by name. Each function has an attribute `goal`, one of `GOALS`."""


def algorithm(function: Callable[..., Any] | None = None, *, goal: str = "all_reduce") -> Callable[..., Any]:
    """Register a function from `n_ranks` to a schedule; use it as `@algorithm` or `@algorithm(goal="broadcast")`.

    The function is wrapped: a number of ranks that is no whole number from 1 up is refused for it.

    Args:
        function: The function; its name becomes the algorithm's name.
        goal: What the schedule is for, one of `GOALS`.

    Returns:
        The function, with the attribute `goal`.

    Raises:
        BadInput: The goal is unknown.

    Example:
        >>> from tfdistedu.collectives.algorithms import ring
        >>> ring.goal, ALGORITHMS["ring"] is ring
        ('all_reduce', True)

    """
    if function is None:
        return functools.partial(algorithm, goal=goal)
    if goal not in GOALS:
        raise BadInput(f"{goal!r} is no goal of a schedule; there are {', '.join(GOALS)}.")

    @functools.wraps(function)
    def checked(n_ranks: int, *args: Any, **kwargs: Any) -> Schedule:
        return function(whole_number(n_ranks, "n_ranks"), *args, **kwargs)

    checked.goal = goal  # type: ignore[attr-defined]
    ALGORITHMS[function.__name__] = checked
    return checked


def whole_number(value: Any, name: str, at_least: int = 1) -> int:
    """Return the value as an int, or say why it is none.

    Args:
        value: A Python or NumPy integer. A bool or a float is refused, even 4.0: it hides a mistake.
        name: How the error calls it.
        at_least: The smallest value allowed.

    Returns:
        The value.

    Raises:
        BadInput: It is no whole number, or too small.

    Example:
        >>> whole_number(4, "n_ranks")
        4

    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < at_least:
        raise BadInput(f"{name} must be a whole number from {at_least} up, and is {value!r}.")
    return number


def rotated(schedule: Schedule, root: int) -> Schedule:
    """Return the schedule with rank r called r + root, so that what happened at rank 0 happens at the root.

    Args:
        schedule: A schedule with rank 0 as its root.
        root: The new root.

    Returns:
        A schedule of the same name and shape.

    Raises:
        BadInput: The root is no rank.

    Example:
        >>> rotated(Schedule("one", 3, 1, [[(0, 1, 0, False)]]), root=2).rounds[0][0][:2]
        (2, 0)

    """
    n = schedule.n_ranks
    if whole_number(root, "root", at_least=0) >= n:
        raise BadInput(f"root {root} is no rank: the {n} ranks are called 0 .. {n - 1}.")
    rounds = [
        [t._replace(src=(t.src + root) % n, dst=(t.dst + root) % n) for t in transfers] for transfers in schedule.rounds
    ]
    return Schedule(schedule.name, n, schedule.n_chunks, rounds)


def find(name: str, goal: str | None = None) -> Callable[..., Schedule]:
    """Return the algorithm of this name.

    Args:
        name: Its name; `-` may stand for `_`.
        goal: Only algorithms for this goal; `None` takes all.

    Returns:
        The function from a number of ranks to a schedule.

    Raises:
        BadInput: There is none of this name; the message names the nearest.

    Example:
        >>> find("halving-doubling")(4).n_chunks
        4

    """
    known = {each: function for each, function in ALGORITHMS.items() if goal in (None, function.goal)}
    wanted = name.strip().lower().replace("-", "_")
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    kind = "algorithm" if goal is None else f"{goal} algorithm"
    raise BadInput(f"there is no {kind} {name!r}.{hint} There are: {', '.join(sorted(known))}.")


def schedule_for(algorithm: Any, n_ranks: int, goal: str | None = None) -> Schedule:
    """Return a schedule from a name, a function or a finished schedule.

    Args:
        algorithm: A name ("ring"), a function from `n_ranks` to a schedule, or a schedule.
        n_ranks: For how many ranks.
        goal: When a name is given, look only at algorithms for this goal.

    Returns:
        The schedule.

    Raises:
        BadInput: There is no such algorithm, or what came out is no schedule for `n_ranks` ranks.

    Example:
        >>> schedule_for("ring", 3).n_chunks
        3

    """
    if isinstance(algorithm, str):
        algorithm = find(algorithm, goal)
    schedule = algorithm(n_ranks) if callable(algorithm) else algorithm
    if not isinstance(schedule, Schedule):
        raise BadInput(
            f"{algorithm!r} is no algorithm: give a name, a function of n_ranks that returns a Schedule, or one."
        )
    if schedule.n_ranks != n_ranks:
        raise BadInput(f"the schedule {schedule.name} is for {schedule.n_ranks} ranks, and there are {n_ranks}.")
    return schedule
