"""How does a rank come into a communicator? It says who it is, and meets the others.

    join(rank, n_ranks, address, token)  -->  mesh (lines to all)  -->  Communicator (what a program calls)

Costs: some milliseconds, once all are there. Leaves out: who starts the ranks; on one machine
`tfdistedu.cluster.LocalCluster` does.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.errors import BadInput, MachineCannot
from tfdistedu.links.communicator import Communicator
from tfdistedu.links.mesh import meet
from tfdistedu.links.prices import costs_for, stored

LINKS = ("shared_memory", "tcp")
_CHANNELS = {"shared_memory": ("control", "segments"), "tcp": ("control", "data")}


def join(
    rank: int,
    n_ranks: int,
    address: str,
    token: str,
    link: str = "shared_memory",
    deadline: float = 30.0,
    prices: dict[str, Any] | None = None,
    weak_order: bool | None = None,
) -> Communicator:
    """Meet the other ranks.

    Args:
        rank: This process's number, 0 to `n_ranks - 1`.
        n_ranks: How many there are.
        address: Where rank 0 listens: `new_address()` on one machine, `"host:port"` on several.
        token: What all ranks know: `new_token()`.
        link: "shared_memory" (one machine) or "tcp".
        deadline: Seconds that a wait may take, at the start and in each call.
        prices: What links cost here, to choose algorithms by; rank 0's count for all. `None`: what `tfdistedu bench
            links` has kept on rank 0's machine, if it has; `{}`: none.
        weak_order: Take the barriers that processors with weak memory order need; `None` looks what this one is.

    Returns:
        The communicator; close it, or use it as a context.

    Raises:
        DeadlineExceeded: Some did not come; the message names them.
        BadInput: The address, the rank, the link or the prices are none.
        MachineCannot: Shared memory is asked for between machines, or where the system cannot hand it over.

    Example:
        >>> import numpy as np
        >>> from tfdistedu.links import new_address, new_token
        >>> with join(0, 1, new_address(), new_token()) as comm:
        ...     comm.all_reduce(np.array([1.0, 2.0]))
        array([1., 2.])

    """
    if link not in LINKS:
        raise BadInput(f"link={link!r}: there are {' and '.join(LINKS)}.")
    if link == "shared_memory" and not address.startswith("local:") and n_ranks > 1:
        raise MachineCannot(
            f"shared memory joins ranks of one machine, and {address} is an address for several: give "
            "link='tcp', or an address from new_address()."
        )
    if rank == 0:
        prices = stored() if prices is None else prices
        for kind in LINKS:
            costs_for(prices, kind, n_ranks)
    mesh = meet(rank, n_ranks, address, token, _CHANNELS[link], prices, deadline)
    return Communicator(mesh, link, deadline, weak_order)
