"""How do ranks talk? Links: the same two pairs of verbs, whatever carries the bytes.

For programs that a person writes:       `send(array, dst)` and `recv(src)`
For executors that run a plan:           `give(step)` and `take(message) -> array`

    program of rank 0  --send-->  link  --recv-->  program of rank 1

`memory` runs all ranks in one process, in orders that it draws, and sees a deadlock at once: the link to learn and to
test with. In `meeting` they add up together, and one sees who waits for whom when not all come. `steps` runs one rank's
plan on any link.

Between processes: `join` gives a `Communicator` over `shared_memory` or `tcp`. Its parts, each read on its own: `mesh`
(how ranks find each other), `peers` (who died, left or failed), `pieces` and `moves` (what is cut, what is not copied),
`fast` (the loop), `choice` (which algorithm).

Costs: imports NumPy only. Leaves out: who is rank 0 and where the others are; that is a cluster's business.
"""

from tfdistedu.links.addresses import new_address, new_token
from tfdistedu.links.communicator import Communicator
from tfdistedu.links.memory import Deadlock, MemoryLink, RankFailed, Run, run_ranks, try_orders
from tfdistedu.links.peers import Mismatch, PeerFailed, PeerGone
from tfdistedu.links.start import join
from tfdistedu.links.steps import run_steps

__all__ = [
    "Communicator",
    "Deadlock",
    "MemoryLink",
    "Mismatch",
    "PeerFailed",
    "PeerGone",
    "RankFailed",
    "Run",
    "join",
    "new_address",
    "new_token",
    "run_ranks",
    "run_steps",
    "try_orders",
]
