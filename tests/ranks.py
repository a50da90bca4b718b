"""Ranks of a communicator as threads of one process: quick, and as good as processes for what is computed.

Whatever depends on processes (deaths, stops, what is left behind) is tested with processes, in tests/faults.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tfdistedu.links import join, new_address, new_token


def run_threads(n_ranks: int, body: Callable[..., Any], deadline: float = 20.0, **how: Any) -> list[Any]:
    """Run `body(comm)` on each rank; return what each returned or raised, by rank."""
    address, token = new_address(), new_token()
    results: list[Any] = [None] * n_ranks

    def rank_main(rank: int) -> None:
        try:
            with join(rank, n_ranks, address, token, deadline=deadline, **how) as comm:
                results[rank] = body(comm)
        except Exception as error:  # it is the result: a test looks at it
            results[rank] = error

    threads = [threading.Thread(target=rank_main, args=(rank,)) for rank in range(n_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def values(results: list[Any]) -> list[Any]:
    """Return the results, or raise the first error among them."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
