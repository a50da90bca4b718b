"""OpenMPI's all-reduce as one rank of the benchmark: `mpirun -n N python openmpi.py ADDRESS`.

Cost: half a second. Left out: other MPIs, which mpi4py would take as well.
"""

from __future__ import annotations


def main() -> None:
    """Be one rank until the launcher closes the line."""
    import block
    import numpy as np
    from mpi4py import MPI

    ranks = MPI.COMM_WORLD

    def prepare(elements: int) -> block.Work:
        data = np.zeros(elements, np.float32)
        return block.in_place(data, lambda: ranks.Allreduce(MPI.IN_PLACE, data))

    block.serve(prepare, ranks.rank, ranks.size, block.arguments()[0])


if __name__ == "__main__":
    main()
