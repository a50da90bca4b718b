"""`tfdistedu run`: any training script as a cluster on this machine."""

from __future__ import annotations

import json
import shlex
import sys

import typer

from tfdistedu.errors import BadInput, DeadlineExceeded

# What stands after the script's name is the script's.
SETTINGS = {"allow_interspersed_args": False, "ignore_unknown_options": False}
ARGUMENTS = typer.Argument(None, metavar="[ARGUMENT]...", help="What the script is given.")


def run(
    script: str | None = typer.Argument(None, metavar="SCRIPT.py", help="The script that each task runs."),
    arguments: list[str] | None = ARGUMENTS,
    workers: int | None = typer.Option(None, "--workers", "-n", metavar="N", help="Number of workers (2)."),
    ps: int = typer.Option(0, "--ps", metavar="M", help="Number of parameter servers; a chief is added, too."),
    chief: bool = typer.Option(False, "--chief", help="Add a chief."),
    evaluator: bool = typer.Option(False, "--evaluator", help="Add an evaluator, which is no member of the cluster."),
    restarts: int = typer.Option(0, "--restarts", metavar="K", min=0, help="Start the whole job again, up to K times."),
    deadline: float | None = typer.Option(None, "--deadline", metavar="SECONDS", help="End it all after this time."),
    start_deadline: float = typer.Option(120.0, "--start-deadline", metavar="SECONDS", help="For the start alone."),
    print_config: bool = typer.Option(False, "--print-config", help="Only print the TF_CONFIG of each task."),
    hosts: str | None = typer.Option(None, "--hosts", metavar="A,B,C", help="Machines, one worker on each."),
    index: int | None = typer.Option(None, "--index", metavar="I", help="Which of --hosts this machine is, from 0."),
    port: int = typer.Option(2222, "--port", help="The port on each of --hosts that does not bring its own."),
) -> None:
    """Run a script as a cluster on this machine: each task under its own TF_CONFIG, its lines under its name."""
    arguments = arguments or []
    if script is None and not print_config:
        raise BadInput("run: name the script that each task runs, after the options.")
    if deadline is not None and deadline <= 0:
        raise BadInput(f"--deadline {deadline}: give seconds, more than 0.")
    if hosts is not None:
        if workers is not None or ps or chief or evaluator or restarts or deadline is not None:
            raise BadInput("--hosts starts this machine's worker only: it goes with --index, --port, --print-config.")
        _on_this_host(script, arguments, hosts.split(","), index, port, print_config)
        return
    if index is not None:
        raise BadInput("--index goes with --hosts: it says which of them this machine is.")
    from tfdistedu.cluster.launch import Job, run_script

    job = Job(2 if workers is None else workers, ps, chief, evaluator, start_deadline)
    if print_config:
        job.reserve()
        for task in job.tasks:
            _print_config(task, job.tf_config_of(task))
        return
    try:
        status = run_script(job, script, arguments, restarts, deadline, say=_say)
    except DeadlineExceeded as error:
        raise DeadlineExceeded(f"run {script}: {error}") from None
    raise typer.Exit(status)


def _on_this_host(
    script: str | None, arguments: list[str], hosts: list[str], index: int | None, port: int, print_config: bool
) -> None:
    from tfdistedu.cluster.launch import become_worker, config_for_hosts

    cluster = config_for_hosts(hosts, port)
    configs = [{"cluster": cluster, "task": {"type": "worker", "index": number}} for number in range(len(hosts))]
    if index is not None and not 0 <= index < len(hosts):
        raise BadInput(f"--index {index}: there are {len(hosts)} hosts, so it is 0 to {len(hosts) - 1}.")
    if print_config:
        for number, config in enumerate(configs):
            if index in (None, number):
                _print_config(f"worker:{number}", config)
        return
    if index is None:
        raise BadInput("--hosts needs --index: which of them this machine is, counted from 0.")
    become_worker(script, arguments, json.dumps(configs[index]))


def _print_config(task: str, config: dict) -> None:
    print(f"{task}  TF_CONFIG={shlex.quote(json.dumps(config))}")


def _say(text: str) -> None:
    print(f"tfdistedu run: {text}", file=sys.stderr, flush=True)
