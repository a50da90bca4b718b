"""Where does a program of several workers hang, and who waits for whom? In words that name call, worker and line.

The idea: run it on `tfdistedu.links.meeting`, where a hang is seen at once, in several orders; then compare numbers.

    meets      a call that is named otherwise, or to which somebody never comes
    agrees     all workers return the same
    is right   ... and it is what one device computes

Costs: some milliseconds an order. Leaves out: real processes; a lesson's `use` has them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfdistedu.course.wrong import Wrong
from tfdistedu.errors import TfdisteduError
from tfdistedu.links.meeting import Call, Hang, Meetings, RankFailed, WrongMeeting, run_group

_ORDERS = 3
_SECONDS = 4.0


def check_meets(program: Callable[..., Any], inputs: Sequence[Any]) -> Meetings:
    """Run a program in several orders, and fail when not all workers meet in every call.

    Args:
        program: The function under test, of (group, input).
        inputs: One input a worker.

    Returns:
        The first order's run.

    Raises:
        Wrong: The message says who waits for whom, in which call, or who meets whom under two names.

    """
    runs = []
    for seed in range(_ORDERS):
        calls: list[list[Call]] = []
        try:
            runs.append(run_group(program, inputs, seed, _SECONDS, calls=calls))
        except Hang as hang:
            raise _waits(program, inputs, hang, calls) from None
        except WrongMeeting as wrong:
            (a, b), (name, other) = wrong.ranks, wrong.names
            raise Wrong(
                f"worker {a} and worker {b} meet in call {wrong.number} and mean different things: {name} and {other}.",
                called=_call(program, inputs),
                came=f"worker {a}: {calls[a][wrong.number].place}\nworker {b}: {calls[b][wrong.number].place}",
                expected="the same calls on all workers, in the same order",
                why="calls are matched by their order alone; TensorFlow would add the two up, or fail on their shapes",
                symptom="right shapes, wrong numbers",
            ) from None
        except RankFailed as failed:
            raise failed.__cause__ or failed from None
    return runs[0]


def _waits(program: Callable[..., Any], inputs: Sequence[Any], hang: Hang, calls: list[list[Call]]) -> Wrong:
    """Say who waits for whom."""
    rank = min(hang.waits_for)
    number, missing = len(calls[rank]) - 1, hang.waits_for[rank]
    whom = " and ".join(f"worker {other}" for other in missing)
    where = [f"worker {other}: finished after {len(calls[other])} calls" for other in missing if other in hang.finished]
    return Wrong(
        f"worker {rank} waits in call {number}, {calls[rank][number].name}, for {whom}: nobody can go on.",
        called=_call(program, inputs),
        came="\n".join([f"worker {r}: {calls[r][-1].place}" for r in hang.waits_for] + where),
        expected=f"{whom} to make call {number} too",
        why="a worker leaves a collective only when all have come; what it holds does not matter",
        symptom="on real workers: no error, no output, until a deadline",
    )


def check_agree(program: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """Fail when two workers return different things.

    Args:
        program: The function under test; it returns (weight, losses, examples).
        inputs: One input a worker.

    Raises:
        Wrong: The message names the first worker that differs from worker 0, and the part.

    """
    results = [_parts(program, inputs, result) for result in check_meets(program, inputs).results]
    for rank, result in enumerate(results):
        for part, mine in result.items():
            if not _same(mine, results[0][part]):
                raise Wrong(
                    f"worker 0 and worker {rank} end with different {part}.",
                    called=_call(program, inputs),
                    came=f"worker 0: {results[0][part]}\nworker {rank}: {mine}",
                    expected="one result, on all workers",
                    why="all see the same sums, so all can compute the same",
                    symptom="each worker knows only of its own examples",
                )


def check_result(program: Callable[..., Any], inputs: Sequence[Any], right: tuple[float, list[float], float]) -> None:
    """Fail when the workers return something else than one device.

    Args:
        program: The function under test; it returns (weight, losses, examples).
        inputs: One input a worker.
        right: What one device computes.

    Raises:
        Wrong: The message names the first part that differs.

    """
    result = _parts(program, inputs, check_meets(program, inputs).results[0])
    expected = dict(zip(("losses", "weight", "examples"), (right[1], right[0], right[2]), strict=True))
    n_steps = len(expected["losses"])
    if len(result["losses"]) != n_steps:
        raise Wrong(
            f"the workers take {len(result['losses'])} steps, and one device takes {n_steps}.",
            called=_call(program, inputs),
            came=f"{len(result['losses'])} losses",
            expected=f"{n_steps}, as many as the longest worker has batches",
            why="a worker without a batch joins with nothing; the others' examples still count",
            symptom="examples are lost" if len(result["losses"]) < n_steps else "",
        )
    for part, here in expected.items():
        if not _same(result[part], here):
            raise Wrong(
                f"{part}: another result than one device's.",
                called=_call(program, inputs),
                came=f"{result[part]}",
                expected=f"{here}",
                why="sums and counts are added up over all workers and divided once; every example counts once",
            )


def probe_meetings(program: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """Return what a program does, for a fingerprint; how it names its calls, and how many it makes, is left out.

    Args:
        program: The function under test.
        inputs: One input a worker.

    Returns:
        The results, rounded; or who waits for whom; or that calls meet under two names, and whether both workers make
        both; or that it failed.

    """
    try:
        return [_rounded(result) for result in run_group(program, inputs, deadline=_SECONDS).results]
    except Hang as hang:
        return ["waits", sorted([rank, list(ranks)] for rank, ranks in hang.waits_for.items())]
    except WrongMeeting as wrong:
        used = _names_used(program, inputs)
        both = all(set(wrong.names) <= used[rank] for rank in wrong.ranks)
        return ["another order" if both else "a call that one makes and another does not"]
    except RankFailed as failed:
        return f"raises {type(failed.__cause__).__name__}"


def _names_used(program: Callable[..., Any], inputs: Sequence[Any]) -> list[set[str]]:
    """Return which calls each worker makes when calls are matched by their order alone."""
    calls: list[list[Call]] = []
    with contextlib.suppress(TfdisteduError):
        run_group(program, inputs, deadline=_SECONDS, by_name=False, calls=calls)
    return [{call.name for call in made} for made in calls]


def _parts(program: Callable[..., Any], inputs: Sequence[Any], result: Any) -> dict[str, Any]:
    """Take a result apart."""
    try:
        weight, losses, examples = result
        return {"losses": [float(loss) for loss in losses], "weight": float(weight), "examples": float(examples)}
    except (TypeError, ValueError):
        raise Wrong(
            f"{program.__name__} has to return (weight, losses, examples).",
            called=_call(program, inputs),
            came=repr(result),
        ) from None


def _same(a: Any, b: Any) -> bool:
    """Compare; sums of some tens of float64 numbers differ by rounding only, far below 1e-9."""
    return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, rtol=1e-9, atol=1e-9))


def _rounded(value: Any) -> Any:
    """Return plain data that rounding does not change."""
    if isinstance(value, list | tuple | np.ndarray):
        return [_rounded(each) for each in value]
    return float(f"{float(value):.6g}") if isinstance(value, int | float | np.number) else type(value).__name__


def _call(program: Callable[..., Any], inputs: Sequence[Any]) -> str:
    sizes = "; ".join(
        f"worker {rank}: {', '.join(str(len(b)) for b in mine) or 'none'}" for rank, mine in enumerate(inputs)
    )
    return f"{program.__name__}(group, batches), examples in each batch of {sizes}"
