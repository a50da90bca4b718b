"""This package's own all-reduce, over shared memory or TCP, as one rank of the benchmark.

The communicator chooses the algorithm. With `in_buffer` the message lies in `comm.buffer(...)`, where others read it.
Cost: some milliseconds to start. Left out: messages of other types.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tfdistedu.bench.ranks.block import Work, in_place
from tfdistedu.links import join


def connect(n_ranks: int, address: str, token: str, link: str, in_buffer: bool) -> Any:
    """Join the other ranks.

    Args:
        n_ranks: How many there are.
        address: Where they meet.
        token: What they know.
        link: "shared_memory" or "tcp".
        in_buffer: Whether the message lies in shared memory from the start.

    Returns:
        From a number of elements to the work.

    """
    rank = int(os.environ["TFDISTEDU_TASK"].split(":")[1])
    comm = join(rank, n_ranks, address, token, link)

    def prepare(elements: int) -> Work:
        data = comm.buffer(elements) if in_buffer else np.empty(elements, np.float32)
        return in_place(data, lambda: comm.all_reduce(data, out=data))

    return prepare
