"""gloo, PyTorch's all-reduce on CPUs over TCP, as one rank of the benchmark: `python gloo.py ADDRESS RANK N_RANKS`.

The ranks meet in a file beside the launcher's socket: no port is taken for that. `GLOO_SOCKET_IFNAME` keeps gloo on
the loopback device. Cost: some 2 s, torch's import. Left out: torch's other back ends.
"""

from __future__ import annotations

import os


def main() -> None:
    """Be one rank until the launcher closes the line."""
    import datetime

    import block
    import torch
    import torch.distributed as dist

    address, rank, n_ranks = block.arguments()
    torch.set_num_threads(1)
    meeting = os.path.join(os.path.dirname(address), "meeting")
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=n_ranks, timeout=datetime.timedelta(seconds=60)
    )

    def prepare(elements: int) -> block.Work:
        tensor = torch.zeros(elements)
        return block.in_place(tensor.numpy(), lambda: dist.all_reduce(tensor))

    block.serve(prepare, rank, n_ranks, address)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
