"""What must a child that is forked in the middle of a job not keep? The lines of its parent.

A line ends, and so tells of a death, when the *last* process that holds it is gone. A child that a program forks for
other work (a data loader, say) holds copies of all lines: its parent could die, and nobody would hear of it.

    rank 1 ---line--- rank 0          rank 1 is killed; its child still holds the line; rank 0 waits for its deadline
      +-- child ---line---+

So each communicator is known here, and a forked child closes its copies before anything else. `exec` needs no care:
Python's descriptors do not survive it.

Costs: nothing but at a fork. Leaves out: forks that C code makes by itself, without Python's `os.fork`.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

_OPEN: weakref.WeakSet[Any] = weakref.WeakSet()


def remember(communicator: Any) -> None:
    """Have a forked child let go of a communicator: its `let_go` is called there.

    Args:
        communicator: What has lines; it is forgotten when it is gone.

    """
    _OPEN.add(communicator)


def _in_the_child() -> None:
    for communicator in list(_OPEN):
        communicator.let_go()
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_the_child)
