"""Who reads what, when several workers share one data set? Said before anything starts.

    files >= workers            FILE    each worker reads files of its own           least to read
    fewer files than workers    DATA    each reads everything, and keeps its part    n times as much to read
    nothing is in files         DATA    the same
    it differs by worker        OFF     each keeps what its program gave it          only if the program shares out

TensorFlow chooses FILE where it finds files, and fails in the first batch when a worker has none: "There aren't enough
elements in this dataset for each shard to have at least one element". Here that is an error before the start, with what
to do.

Cost: nothing. Left out: files of very different sizes, which FILE shares unevenly; workers then end at different times,
and those that are done go on with empty batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tfdistedu.errors import BadInput

POLICIES = ("FILE", "DATA", "OFF")


class Shards(NamedTuple):
    """A plan.

    Attributes:
        policy: "FILE", "DATA" or "OFF".
        files: For FILE, the files of each worker; otherwise what each worker opens: all of them.
        why: In one sentence.
    """

    policy: str
    files: tuple[tuple[str, ...], ...]
    why: str


def plan_shards(files: Sequence[str], n_workers: int, policy: str | None = None) -> Shards:
    """Say how workers share files.

    Args:
        files: The files of the data set, in one order on all workers; empty if it does not lie in files.
        n_workers: How many workers there are.
        policy: What is wanted; `None` chooses.

    Returns:
        The plan. With FILE each file is read by exactly one worker, as TensorFlow deals them out.

    Raises:
        BadInput: FILE with fewer files than workers; an unknown policy; a file that is named twice; no worker.

    Example:
        >>> plan_shards(["a", "b", "c"], 2).files
        (('a', 'c'), ('b',))
        >>> plan_shards(["a"], 2).policy
        'DATA'

    """
    if n_workers < 1:
        raise BadInput(f"plan_shards: at least one worker, not {n_workers}.")
    if policy is not None and policy not in POLICIES:
        raise BadInput(f"plan_shards(policy={policy!r}): {', '.join(POLICIES)}.")
    repeated = sorted({name for name in files if list(files).count(name) > 1})
    if repeated:
        raise BadInput(f"plan_shards: {repeated[0]} is named twice: its examples would come twice in each epoch.")
    enough = len(files) >= n_workers
    if policy == "FILE" and not enough:
        raise BadInput(
            f"plan_shards: {len(files)} file(s) for {n_workers} workers: with FILE some would read nothing, and "
            "TensorFlow fails in the first batch. Write at least as many files as workers, or take DATA."
        )
    if policy == "FILE" or (policy is None and enough):
        shares = tuple(tuple(files[worker::n_workers]) for worker in range(n_workers))
        return Shards("FILE", shares, f"{len(files)} files for {n_workers} workers: each reads its own")
    everything = (tuple(files),) * n_workers
    if policy == "OFF":
        return Shards("OFF", everything, "each worker keeps what its own program gives it: share out there")
    reason = f"{len(files)} file(s) for {n_workers} workers" if files else "the data does not lie in files"
    return Shards("DATA", everything, f"{reason}: each reads everything and keeps its part")
