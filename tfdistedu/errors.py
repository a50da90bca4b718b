"""The errors that this package raises on purpose.

Every message says what happened, where (rank, replica, task, round, file), and what to do next.
The command line turns each class into one exit status:

| class              | meaning                                        | exit status |
|--------------------|------------------------------------------------|-------------|
| `BadInput`         | what the caller gave cannot be used            | 2           |
| `MachineCannot`    | something is missing on this machine           | 3           |
| `DeadlineExceeded` | a wait ended; the message names whom it waited for | 124     |
| `TfdisteduError`   | anything else that was found wrong             | 1           |
"""

from __future__ import annotations


class TfdisteduError(Exception):
    """Base of all errors raised on purpose; ran, and found something wrong (exit status 1)."""

    exit_status = 1
    # In a tf.function an error keeps its class only if it is made as a plain Exception is; a ValueError is not.
    __init__ = Exception.__init__


class BadInput(TfdisteduError, ValueError):
    """What the caller gave cannot be used: the message says what, where, and what would do (exit status 2)."""

    exit_status = 2


class MachineCannot(TfdisteduError, RuntimeError):
    """This machine or this process cannot do it: the message says what is missing (exit status 3)."""

    exit_status = 3


class DeadlineExceeded(TfdisteduError, TimeoutError):
    """A wait reached its deadline: the message names whom it waited for (exit status 124)."""

    exit_status = 124
