"""`tfdistedu simulate training`: accuracy against time, for each rule, on workers that one does not have."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json
from tfdistedu.errors import BadInput

if TYPE_CHECKING:
    from tfdistedu.parameter_servers.rules import Rule
    from tfdistedu.simulate.training import Report


def training(
    workers: str = typer.Option("1,4,16", "--workers", "-n", help="Numbers of workers, 1 to 10000."),
    rules: str = typer.Option(
        "bsp,ssp:2,asp", "--rules", "-r", help="bsp, asp, ssp:SLACK, backup:SPARE, softsync:SPLITS; with commas."
    ),
    gradients: int = typer.Option(4000, "--gradients", "-g", min=1, help="Gradients that each run applies."),
    rate: float = typer.Option(0.1, "--rate", help="Learning rate."),
    by_staleness: bool = typer.Option(False, "--by-staleness", help="Divide each gradient's rate by its staleness."),
    compensate: float = typer.Option(0.0, "--compensate", metavar="STRENGTH", help="Correct gradients for the delay."),
    target: float = typer.Option(0.95, "--target", help="The accuracy whose time is told."),
    compute: float = typer.Option(0.1, "--compute", metavar="SECONDS", help="Mean time of one gradient."),
    kind: str = typer.Option("lognormal", "--kind", help="constant, uniform, exponential or lognormal times."),
    spread: float = typer.Option(0.3, "--spread", help="How wide the times lie."),
    slow: str = typer.Option("", "--slow", metavar="W:F,...", help="Worker W computes F times slower."),
    leave: str = typer.Option("", "--leave", metavar="W:T[:T2],...", help="Worker W leaves at T, and returns at T2."),
    latency: float = typer.Option(1e-4, "--latency", help="Seconds that a message travels."),
    bandwidth: float = typer.Option(1.25e9, "--bandwidth", help="Bytes per second through the server's port."),
    seed: int = typer.Option(0, "--seed", min=0, help="Another seed, another run."),
    plot: str | None = typer.Option(None, "--plot", metavar="FILE", help="Accuracy over time: FILE.png or .svg."),
    json: str | None = JSON_OPTION,
) -> None:
    """Train on a virtual clock: real digits and gradients, simulated times, 1 to 10,000 workers."""
    from tfdistedu.cli.simulate import _check_plot
    from tfdistedu.simulate.delays import ComputeTime
    from tfdistedu.simulate.digits_model import DigitsModel
    from tfdistedu.simulate.setting import Away, Training
    from tfdistedu.simulate.training import simulate

    check_writable(plot, json)
    _check_plot(plot)
    factors = {int(w): float(f) for w, f in _pairs("--slow", slow, 2, 2)}
    away = tuple(Away(int(w), *map(float, times)) for w, *times in _pairs("--leave", leave, 2, 3))
    runs = []
    for n_workers in _numbers(workers):
        for text in rules.split(","):
            rule = rule_of(text.strip(), n_workers)
            known = {worker: factor for worker, factor in factors.items() if worker < n_workers}
            times = ComputeTime(compute, kind, spread, known)
            runs.append(
                Training(
                    n_workers, rule, max(1, gradients // rule.needs), rate=rate, compute=times, latency=latency,
                    bandwidth=bandwidth, by_staleness=by_staleness, compensation=compensate,
                    away=tuple(each for each in away if each.worker < n_workers), seed=seed,
                )
            )  # fmt: skip
    reports = []
    model = DigitsModel()
    for number, run in enumerate(runs, 1):
        if sys.stderr.isatty():
            print(f"\r{number} of {len(runs)}: {run.rule.name}, {run.n_workers} workers ", end="", file=sys.stderr)
        reports.append(simulate(run, model))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    rows = [_row(run, report, target) for run, report in zip(runs, reports, strict=True)]
    write_json({"gradients": gradients, "target": target, "rows": rows}, json)
    if plot is not None:
        _plot(rows, plot)
    if json != "-":
        _print(rows, target)


def rule_of(text: str, n_workers: int) -> Rule:
    """Read a rule such as "ssp:2".

    Args:
        text: Its name, and its number where it has one.
        n_workers: Number of workers.

    Returns:
        The rule.

    """
    from tfdistedu.parameter_servers import rules

    name, colon, number = text.partition(":")
    makers = {
        "bsp": (lambda: rules.bsp(n_workers), False),
        "asp": (rules.asp, False),
        "ssp": (lambda: rules.ssp(int(number)), True),
        "backup": (lambda: rules.backup(n_workers, min(int(number), n_workers - 1)), True),
        "softsync": (lambda: rules.softsync(n_workers, min(int(number), n_workers)), True),
    }
    make, takes_number = makers.get(name, (None, False))
    if make is None or takes_number != bool(colon) or (takes_number and not number.isdigit()):
        raise BadInput(f"--rules {text!r}: there are bsp, asp, ssp:SLACK, backup:SPARE and softsync:SPLITS.")
    return make()


def _numbers(text: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise BadInput(f"--workers {text!r}: write whole numbers with commas between them, like 1,4,16.") from None


def _pairs(option: str, text: str, least: int, most: int) -> list[list[str]]:
    found = [part.split(":") for part in text.split(",") if part.strip()]
    for parts in found:
        try:
            right = least <= len(parts) <= most and int(parts[0]) >= 0 and all(float(part) >= 0 for part in parts[1:])
        except ValueError:
            right = False
        if not right:
            raise BadInput(
                f"{option} {text!r}: a worker's number and {'two times' if most == 3 else 'a factor'}, W:..."
            )
    return found


def _row(run: Any, report: Report, target: float) -> dict[str, Any]:
    at = report.seconds_to(target)
    return {
        "workers": run.n_workers,
        "rule": run.rule.name + (f":{run.rule.slack}" if run.rule.name == "ssp" else ""),
        "gradients_an_update": run.rule.needs,
        "updates": report.updates,
        "seconds": report.seconds,
        "accuracy": report.accuracy,
        "seconds_to_target": at if at < float("inf") else None,
        "staleness_mean": report.staleness_mean,
        "staleness_max": report.staleness_max,
        "staleness": {str(s): count for s, count in sorted(report.staleness.items())},
        "dropped": report.dropped,
        "waited_share": report.waited / (report.seconds * run.n_workers),
        "curve": [look._asdict() for look in report.curve],
    }


def _print(rows: list[dict[str, Any]], target: float) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (
        "workers",
        "rule",
        "updates",
        "seconds",
        f"to {target:g}",
        "accuracy",
        "staleness",
        "dropped",
        "waiting",
    ):
        table.add_column(name, justify="left" if name == "rule" else "right", no_wrap=True)
    for row in rows:
        reached = row["seconds_to_target"]
        table.add_row(
            str(row["workers"]), row["rule"], str(row["updates"]), f"{row['seconds']:.1f}",
            "never" if reached is None else f"{reached:.1f}", f"{row['accuracy']:.3f}",
            f"{row['staleness_mean']:.1f} ({row['staleness_max']})", str(row["dropped"]), f"{row['waited_share']:.0%}",
        )  # fmt: skip
    out = console()
    out.print(table)
    out.print("Simulated seconds; staleness: mean (largest); waiting: share of the workers' time. A model.")


def _plot(rows: list[dict[str, Any]], file: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for number, row in enumerate(rows):
        x, y = [look["seconds"] for look in row["curve"]], [look["accuracy"] for look in row["curve"]]
        axes.plot(x, y, "-" if number % 2 else "--", label=f"{row['rule']}, {row['workers']} workers")
    least = min(look["seconds"] for row in rows for look in row["curve"][1:])
    axes.set(xscale="log", xlim=(least / 2, None), ylim=(0, 1), xlabel="simulated seconds", ylabel="accuracy")
    axes.set_title("Accuracy against simulated time")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(file)
    print(f"wrote {file}", file=sys.stderr)
