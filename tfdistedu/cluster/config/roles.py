"""Do the jobs suit the strategy?

|                   | MultiWorkerMirroredStrategy            | ParameterServerStrategy                        |
|-------------------|----------------------------------------|------------------------------------------------|
| chief             | trains, as the first of the workers    | coordinates; at most one                       |
| worker            | trains                                 | serves: runs what the coordinator sends        |
| ps                | never                                  | holds the variables                            |
| evaluator         | not listed; is a process of its own    | not listed: the coordinator would wait for it  |

TensorFlow checks a few of these. Left out: what a program really does with its cluster.
"""

from __future__ import annotations

from tfdistedu.cluster.config.addresses import split
from tfdistedu.cluster.config.findings import Finding
from tfdistedu.cluster.config.model import Task


def check_roles(tasks: list[Task], me: tuple[str, int] | None, strategy: str | None) -> list[Finding]:
    """Hold the jobs against what a strategy needs.

    Args:
        tasks: All tasks of the cluster, their addresses right.
        me: This process, if it is known.
        strategy: "multi_worker", "parameter_server", or `None`: parameter servers if there is a ps.

    Returns:
        What does not fit.

    """
    by_job = {job: [task for task in tasks if task.job == job] for job in ("chief", "worker", "ps", "evaluator")}
    chiefs, workers, servers, evaluators = by_job.values()
    needs_servers = strategy == "parameter_server" or (strategy is None and bool(servers))
    found: list[Finding] = []

    def error(code: str, where: str, message: str, remedy: str) -> None:
        found.append(Finding(code, where, message, remedy))

    def warning(code: str, where: str, message: str, remedy: str) -> None:
        found.append(Finding(code, where, message, remedy, is_error=False))

    for job, there in (("chief", chiefs), ("evaluator", evaluators)):
        if len(there) > 1:
            what = f"there are {len(there)} {job}s, and a cluster has at most one"
            remedy = "Keep the first; list the others as workers." if job == "chief" else 'Leave them out of "cluster".'
            error(f"{job}-many", f"cluster.{job}", what, remedy)
    if evaluators and tasks != evaluators:
        if needs_servers:
            why = "the coordinator would connect to it and wait for ever, for an evaluator runs no server"
        else:
            why = "it takes no part in the training; TensorFlow 2 starts it beside the cluster"
        report = error if needs_servers else warning
        remedy = 'Leave it out of "cluster"; in its own process set the task type "evaluator" and the same cluster.'
        report("evaluator-in-cluster", "cluster.evaluator", f"an evaluator is listed: {why}", remedy)
    if needs_servers and not servers:
        what = "ParameterServerStrategy keeps its variables on parameter servers, and there is none"
        error("ps-missing", "cluster.ps", what, 'Add "ps": ["host:port"], or use MultiWorkerMirroredStrategy.')
    if needs_servers and not workers:
        what = "there is no worker, so nobody computes" + ("; a chief only coordinates here" if chiefs else "")
        error("worker-missing", "cluster.worker", what, 'Add "worker": ["host:port"].')
    if needs_servers and servers and workers and not chiefs:
        what = "there is no chief; someone outside this cluster must coordinate it"
        remedy = 'Add "chief": ["host:port"] for the process that runs the training program, if it is one of yours.'
        warning("chief-missing", "cluster.chief", what, remedy)
    if strategy == "multi_worker" and servers:
        what = "MultiWorkerMirroredStrategy has no parameter servers; the other tasks would wait for this one"
        error("ps-with-multi-worker", "cluster.ps", what, 'Leave "ps" out, or use ParameterServerStrategy.')
    _sparse(by_job, strategy, report_error=error, report_warning=warning)
    _single(tasks, me, servers, report_error=error, report_warning=warning)
    return found


def _sparse(by_job: dict, strategy: str | None, report_error, report_warning) -> None:
    for job, there in by_job.items():
        gaps = sorted(set(range(len(there))) - {task.index for task in there})
        if gaps and strategy == "multi_worker":
            what = f"{job}:{gaps[0]} is missing, and MultiWorkerMirroredStrategy needs every task in every TF_CONFIG"
            report_error("job-has-gaps", f"cluster.{job}", what, "List all addresses of the job.")
        elif gaps:
            what = f"{job}:{gaps[0]} is left out; a server may do with the tasks that it talks to, a strategy may not"
            report_warning("job-has-gaps", f"cluster.{job}", what, "List all addresses if you build a strategy here.")


def _single(tasks: list[Task], me: tuple[str, int] | None, servers: list[Task], report_error, report_warning) -> None:
    without_port = [task for task in tasks if split(task.address).port == 0]
    for task in without_port if len(tasks) > 1 else []:
        what = f"port 0 means any free port: the system picks one, and no other task learns which one {task.name} has"
        remedy = "Take a whole number from 1 to 65535 that is free on that machine, for example 2222."
        report_error("address-port-zero", f"cluster.{task.job}[{task.index}]", what, remedy)
    alone = len(tasks) == 1 and not (me and me[0] == "evaluator")
    if alone and not servers:
        what = f"{tasks[0].name} is the only task: it trains alone"
        if without_port:
            what += ", at any free port"
        remedy = "List every process, in the same order everywhere; or unset TF_CONFIG for a single process."
        report_warning("single-task", f"cluster.{tasks[0].job}", what, remedy)
