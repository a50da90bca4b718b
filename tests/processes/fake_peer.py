"""A peer without an all-reduce, for tests of the benchmark: `python fake_peer.py FOLDER_OF_BLOCK MODE ADDRESS RANK N`.

It knows what the others would send, for the values are known, and computes the sum alone. What else it does, MODE says.
"""

from __future__ import annotations

import os
import signal
import sys
import time

sys.path.insert(0, sys.argv.pop(1))
mode = sys.argv.pop(1)

import block  # noqa: E402
import numpy as np  # noqa: E402

address, rank, n_ranks = block.arguments()
calls = 0


def prepare(elements: int) -> block.Work:
    data = np.zeros(elements, np.float32)

    def call() -> None:
        global calls
        calls += 1
        if data.any():  # the checked call; the timed ones reduce zeros
            data[:] = (data - rank) * n_ranks + n_ranks * (n_ranks - 1) // 2
        if mode == "wrong" and rank == 1 and data.any():
            data[-1] += 1
        if mode == "crash" and rank == 1 and calls == 4:
            print("Error: a rank of the fake peer ends itself", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if mode == "hang" and rank == 1 and calls == 4:
            time.sleep(600)

    return block.in_place(data, call)


if mode == "no start":
    raise ImportError("no module named fake")
block.serve(prepare, rank, n_ranks, address)
