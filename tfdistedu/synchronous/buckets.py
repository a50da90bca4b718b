"""Which gradients travel together, so that few messages are sent and the first one leaves early?

Backpropagation yields gradients from the last layer to the first. A message for each costs a latency each; one message
for all waits for the last. So they are fused into buckets, in the order in which they come, and a bucket is sent as
soon as it is full, while the rest of the backward pass still runs:

    backward    |layer 4|layer 3|layer 2|layer 1|
    sending             |== bucket 0 ==|== bucket 1 ==|            instead of   |======== all ========|  after it

The first bucket is small, so that sending begins soon. All ranks must make the same buckets and send them in the same
order, or they would wait for each other: the plan depends on sizes and types alone.

Cost: one copy of each gradient into its bucket. Left out: priorities (what the next forward pass needs first).

S. Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tfdistedu.errors import BadInput

BUCKET_BYTES, FIRST_BYTES = 4 << 20, 1 << 20


class Bucket(NamedTuple):
    """Gradients that travel together.

    Attributes:
        members: Their indices, in the order in which they lie in the bucket.
        dtype: Their type.
        n_bytes: Bytes of all of them.
    """

    members: tuple[int, ...]
    dtype: str
    n_bytes: int


def plan_buckets(
    sizes: Sequence[int], dtypes: Sequence[str], most: int = BUCKET_BYTES, first: int = FIRST_BYTES
) -> list[Bucket]:
    """Fuse gradients into buckets.

    Args:
        sizes: Bytes of each gradient, in the order of the variables: backpropagation yields the last one first.
        dtypes: The type of each; a bucket has one.
        most: A bucket is closed when it holds so many bytes.
        first: The same for the first bucket.

    Returns:
        The buckets, in the order in which they are sent. Each gradient is in one.

    Raises:
        BadInput: A limit below 1, or lists of different lengths.

    Example:
        >>> [bucket.members for bucket in plan_buckets([40, 8, 8, 8], ["float32"] * 4, most=16, first=8)]
        [(3,), (2, 1), (0,)]

    """
    if most < 1 or first < 1 or len(sizes) != len(dtypes):
        raise BadInput(f"plan_buckets: limits of at least 1 byte and one type a size, not {most}, {first}, {dtypes}.")
    buckets: list[Bucket] = []
    open_ones: dict[str, list[int]] = {}
    held: dict[str, int] = {}
    # Step 1: backwards. The gradient of the last variable comes first.
    for index in reversed(range(len(sizes))):
        kind = dtypes[index]
        open_ones.setdefault(kind, []).append(index)
        held[kind] = held.get(kind, 0) + sizes[index]
        # Step 2: full? Then it leaves, and nobody waits for what comes later.
        if held[kind] >= (most if buckets else first):
            buckets.append(Bucket(tuple(open_ones.pop(kind)), kind, held.pop(kind)))
    # Step 3: the rest leaves at the end.
    buckets += [Bucket(tuple(members), kind, held[kind]) for kind, members in open_ones.items()]
    return buckets


def denser_is_cheaper(rows: int, all_rows: int, row_bytes: int, index_bytes: int = 8) -> bool:
    """Tell whether sparse gradients travel cheaper as one dense table.

    Args:
        rows: Rows of all ranks together, repeated ones counted each time.
        all_rows: Rows of the table.
        row_bytes: Bytes of one row.
        index_bytes: Bytes of one index.

    Returns:
        Whether an all-reduce of the table (twice its bytes) sends less than a gather of all rows with their indices.

    Example:
        >>> denser_is_cheaper(10, 1000, 64), denser_is_cheaper(5000, 1000, 64)
        (False, True)

    """
    return rows * (row_bytes + index_bytes) > 2 * all_rows * row_bytes
