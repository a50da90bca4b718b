"""`tfdistedu doctor`: why a cluster does not start; without TensorFlow, and at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json
from tfdistedu.errors import BadInput

if TYPE_CHECKING:
    from tfdistedu.cluster.doctor import Report

_STATUS = {"answers": "answers", "unresolved": "host not found", "refused": "nobody listens", "other": "not TensorFlow"}


def doctor(
    tf_config: str | None = typer.Option(
        None, "--tf-config", metavar="TEXT|FILE", help="Look at this one, not at the environment's; - for stdin."
    ),
    strategy: str | None = typer.Option(None, "--strategy", help="multi_worker, parameter_server or mirrored."),
    probe: bool = typer.Option(True, "--probe/--no-probe", help="Dial the other tasks, or look at the text only."),
    deadline: float = typer.Option(1.0, "--deadline", metavar="SECONDS", help="How long a task may take to answer."),
    json_file: str | None = JSON_OPTION,
) -> int:
    """Look at this machine, at TF_CONFIG, and at every task that it names; 0: sound, 1: something is wrong."""
    from tfdistedu.cluster.doctor import examine

    check_writable(json_file)
    text = os.environ.get("TF_CONFIG") if tf_config is None else _text_of(tf_config)
    report = examine(text, strategy, dial=probe, deadline=deadline)
    write_json(report.as_json() if json_file else None, json_file)
    if json_file != "-":
        _print(report)
    return 1 if report.errors else 0


def _text_of(given: str) -> str:
    """Return the text itself, or what stands in the file of that name."""
    if given == "-":
        return sys.stdin.read()
    if given.lstrip().startswith(("{", "[", "'", '"')) or "\n" in given:
        return given
    path = Path(given)
    try:
        if path.is_file():
            # A byte order mark stays: TensorFlow would see it too. A trailing line break goes, as in "$(cat FILE)".
            return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
        if path.is_dir():
            raise BadInput(f"doctor: {given} is a folder; name a file that holds a TF_CONFIG.")
    except (OSError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
    if given.endswith((".json", ".txt")):
        raise BadInput(f"doctor: there is no file {given}.")
    return given


def _print(report: Report) -> None:
    from rich.text import Text

    out = console()
    m = report.machine

    def line(label: str, value: str) -> None:
        value = value.encode("utf-8", "backslashreplace").decode()  # a variable may hold bytes that are no text
        out.print(Text.assemble((f"{label:<13}", "bold"), value), soft_wrap=True)

    line("Python", f"{m['python']} on {m['platform']}")
    line("TensorFlow", m["tensorflow"] or "not installed")
    other = f"tf_keras {m['tf_keras']}" if m["tf_keras"] else "no tf_keras"
    line("Keras", f"{m['keras'] or 'not installed'} ({other}; tf.keras is Keras {report.keras})")
    for name, can in report.as_json()["strategies"].items():
        line("", f"{name}: {can}")
    memory = "unknown" if m["memory_gb"] is None else f"{m['memory_gb']:g} GB, {m['memory_free_gb']:g} GB free"
    line("CPUs", f"{m['cpus']:g}, shared by all tasks here; memory: {memory}")
    settings = {"THREADS": [], "DEVICES": []}
    for name, value in m["variables"].items():
        settings[name.rpartition("_")[2]].append(f"{name}={value}")
    line("Threads", "; ".join(settings["THREADS"]) or "TensorFlow's own choice: one a CPU, in each task")
    line("GPUs", "; ".join([", ".join(m["gpus"]) or "none that a driver knows", *settings["DEVICES"]]))
    line("TF_CONFIG", _config_line(report))
    for edge in report.edges:
        line("", f"{edge.task.name:<12} {edge.task.address:<24} {_STATUS.get(edge.status, edge.status)}")
    for finding in report.findings:
        word, style = ("error", "bold red") if finding.is_error else ("warning", "yellow")
        head = Text.assemble((word, style), f" {finding.where}: {finding.message} [{finding.code}]")
        out.print(head, soft_wrap=True)
        out.print(Text(f"    {finding.remedy}"), soft_wrap=True)
    if report.findings:
        counts = f"Errors: {len(report.errors)}. Warnings: {len(report.warnings)}."
        out.print(Text(f"{counts} `tfdistedu explain CODE` says more."), soft_wrap=True)
    else:
        out.print("Nothing is wrong.")


def _config_line(report: Report) -> str:
    if not report.is_set:
        return "not set: this process is alone"
    if report.config is None:
        return "has errors"
    if not report.config.tasks:
        return "names no cluster"
    jobs: dict[str, int] = {}
    for task in report.config.tasks:
        jobs[task.job] = jobs.get(task.job, 0) + 1
    return f"{report.config.name or 'no task'} of {', '.join(f'{count} {job}' for job, count in jobs.items())}"
