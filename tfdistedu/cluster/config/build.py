"""Which TF_CONFIG does each task of a cluster get?

    build(workers=2, ps=1, chief=True, ports=[1, 2, 3, 4])
        chief:0 localhost:1 | worker:0 localhost:2 | worker:1 localhost:3 | ps:0 localhost:4

One cluster, the same in all, and a task that differs. Left out: finding free ports (the launcher does), starting.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from tfdistedu.cluster.config.checks import parse
from tfdistedu.cluster.config.model import ClusterConfig, Task
from tfdistedu.errors import BadInput


def build(
    workers: int = 2,
    ps: int = 0,
    chief: bool = False,
    evaluator: bool = False,
    hosts: str | Sequence[str] = "localhost",
    ports: int | Sequence[int] = 2222,
) -> tuple[ClusterConfig, ...]:
    """Build the config of every task.

    Args:
        workers: How many workers; at least 1 (0 only with a chief and without ps).
        ps: How many parameter servers.
        chief: Whether there is a chief.
        evaluator: Whether there is an evaluator; it gets a config, and is not listed in the cluster.
        hosts: One host for all, or one a task, in the order chief, workers, ps.
        ports: One port for all (if each has a host of its own), or one a task in the same order.

    Returns:
        One config a task, in the order chief, workers, ps, evaluator.

    Raises:
        BadInput: The numbers do not fit, or what comes out has errors; the message holds them.

    Example:
        >>> [c.name + " " + str(c.address) for c in build(workers=2, ps=1, evaluator=True, ports=[1, 2, 3])]
        ['worker:0 localhost:1', 'worker:1 localhost:2', 'ps:0 localhost:3', 'evaluator:0 None']

    """
    workers, ps = _count(workers, "workers"), _count(ps, "ps")
    names = [("chief", 0)] * bool(chief) + [("worker", i) for i in range(workers)] + [("ps", i) for i in range(ps)]
    if not names:
        raise BadInput("build: no tasks; give workers=2, for example.")
    all_hosts, all_ports = _one_each(hosts, len(names), "hosts"), _one_each(ports, len(names), "ports")
    tasks = []
    for (job, index), host, port in zip(names, all_hosts, all_ports, strict=True):
        host = f"[{host}]" if ":" in str(host) and not str(host).startswith("[") else host
        tasks.append(Task(job, index, f"{host}:{port}"))
    made = [ClusterConfig(tuple(tasks), me) for me in names]
    if evaluator:
        made.append(ClusterConfig(tuple(tasks), ("evaluator", 0)))
    wrong = parse(made[0].render()).errors
    if wrong:
        raise BadInput("build: " + " ".join(f"{f.where}: {f.message}. {f.remedy}" for f in wrong))
    return tuple(made)


def _count(n: int, what: str) -> int:
    try:
        if isinstance(n, bool):
            raise TypeError
        n = operator.index(n)
    except TypeError:
        raise BadInput(f"build({what}): a whole number, not {n!r}.") from None
    if n < 0:
        raise BadInput(f"build({what}): at least 0, not {n}.")
    return n


def _one_each(given: str | int | Sequence, n: int, what: str) -> list:
    if isinstance(given, str | int):
        return [given] * n
    given = list(given)
    if len(given) != n:
        raise BadInput(f"build({what}): {len(given)} for {n} tasks; give one for all, or one a task.")
    return given
