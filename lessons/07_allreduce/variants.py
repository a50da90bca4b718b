"""Rings that are right, each in another way: a learner's tests must accept them all."""

from __future__ import annotations

import numpy as np

from tfdistedu.collectives import Schedule, Transfer, chunk_bounds, execute, ring
from tfdistedu.links import run_ranks


def plain_ring(arrays, trace):
    """The ring of the package on the plain executor."""
    buffers = [array.copy() for array in arrays]
    execute(ring(len(arrays)), buffers, trace=trace)
    return buffers


def leftward_ring(arrays, trace):
    """The same ring with all arrows turned round."""
    n = len(arrays)
    rounds = [[t._replace(src=-t.src % n, dst=-t.dst % n) for t in transfers] for transfers in ring(n).rounds]
    buffers = [array.copy() for array in arrays]
    execute(Schedule("leftward", n, n, rounds), buffers, trace=trace)
    return buffers


def textbook_ring(arrays, trace):
    """Rank r starts with chunk r, and so owns chunk r + 1 in between; the first chunks are the longer ones."""
    n, size = len(arrays), len(arrays[0])
    rounds = [[Transfer(r, (r + 1) % n, (r - s) % n, True) for r in range(n)] for s in range(n - 1)]
    rounds += [[Transfer(r, (r + 1) % n, (r + 1 - s) % n, False) for r in range(n)] for s in range(n - 1)]
    bounds = np.cumsum([0, *(len(part) for part in np.array_split(np.arange(size), n))]).tolist()
    buffers = [array.copy() for array in arrays]
    execute(Schedule("textbook", n, n, rounds), buffers, bounds=bounds, trace=trace)
    return buffers


def ring_of_programs(arrays, trace):
    """One program a rank, which sends and receives; its records say nothing of chunks."""

    def program(link, mine):
        rank, n = link.rank, link.n_ranks
        bounds = chunk_bounds(mine.size, n)
        parts = [mine[bounds[c] : bounds[c + 1]].copy() for c in range(n)]
        for s in range(2 * (n - 1)):
            link.send(parts[(rank - s - 1) % n if s < n - 1 else (rank - s + n - 1) % n], (rank + 1) % n)
            came, chunk = link.recv((rank - 1) % n), (rank - s - 2) % n if s < n - 1 else (rank - s + n - 2) % n
            parts[chunk] = parts[chunk] + came if s < n - 1 else came
        return np.concatenate(parts)

    run = run_ranks(program, arrays)
    trace += run.records
    return run.results
