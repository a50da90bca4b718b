"""Watch a ring: python watch_ring.py RANKS NUMBERS [RANK]. One line for each chunk that a rank sends or gets."""

import sys

from tfdistedu.collectives import ring
from tfdistedu.collectives.trace import trace


def lines(n_ranks: int, size: int, rank: int = 0) -> list[str]:
    """Return one line for each chunk of float32 numbers that a rank sends or gets."""
    found = []
    for record in trace(ring(n_ranks), size, itemsize=4):
        if rank in (record.src, record.dst):
            verb = f"sends to {record.dst}" if record.src == rank else f"gets from {record.src}"
            then = "" if record.src == rank else " and adds it" if record.reduce else " and keeps it"
            found.append(
                f"round {record.round}: rank {rank} {verb}: chunk {record.chunk}, {record.n_bytes} bytes{then}"
            )
    return found


if __name__ == "__main__":
    print("\n".join(lines(*map(int, sys.argv[1:]))))
