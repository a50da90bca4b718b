"""`tfdistedu simulate paper`: what papers on asynchronous training found, found again in seconds."""

from __future__ import annotations

import math
import sys
from typing import Any

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json
from tfdistedu.errors import BadInput

NAMES = ("staleness_aware", "stale_synchronous", "backup_workers", "downpour")


def paper(
    name: str | None = typer.Argument(None, help="Which paper; without one they are listed. `all` runs all."),
    seeds: int = typer.Option(3, "--seeds", min=1, help="Runs of each setting, whose median counts."),
    plot: str | None = typer.Option(None, "--plot", metavar="FILE", help="The figure: FILE.png or .svg."),
    json: str | None = JSON_OPTION,
) -> None:
    """Reproduce a paper on the virtual clock, and say whether its claim came out. Status 1: it did not."""
    from tfdistedu.cli.simulate import _check_plot

    papers = [_load(each) for each in NAMES]
    if name is None:
        write_json({"papers": [{"name": p.name, "source": p.source, "claim": p.claim} for p in papers]}, json)
        if json != "-":
            for each in papers:
                _say(f"[bold]{each.name}[/]  {each.source}\n    {each.claim}")
            _say("Run one: tfdistedu simulate paper staleness_aware --plot figure.svg")
        return
    chosen = [each for each in papers if name in (each.name, "all")]
    if not chosen:
        raise BadInput(f"simulate paper {name!r}: there are {', '.join(NAMES)}, and all.")
    check_writable(plot, json)
    _check_plot(plot)
    found = [_run(each, seeds) for each in chosen]
    write_json({"papers": found}, json)
    if plot is not None:
        _plot(chosen, found, plot)
    if json != "-":
        for each, result in zip(chosen, found, strict=True):
            _print(each, result)
    raise typer.Exit(0 if all(sentence["true"] for result in found for sentence in result["holds"]) else 1)


def _load(name: str) -> Any:
    from importlib import import_module

    return import_module(f"tfdistedu.simulate.papers.{name}").PAPER


def _run(each: Any, seeds: int) -> dict[str, Any]:
    live = sys.stderr.isatty()

    def progress(text: str) -> None:
        if live:
            print(f"\r\033[K{each.name}: {text}", end="", file=sys.stderr, flush=True)

    rows = each.run(seeds, progress)
    if live:
        print("\r\033[K", end="", file=sys.stderr)
    holds = [{"sentence": sentence, "true": bool(true)} for sentence, true in each.holds(rows)]
    return {"name": each.name, "seeds": seeds, "holds": holds, "rows": [_finite(row) for row in rows]}


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """Write a time that never came as null: JSON knows no infinity."""
    return {key: None if isinstance(value, float) and math.isinf(value) else value for key, value in row.items()}


def _print(each: Any, result: dict[str, Any]) -> None:
    from rich.table import Table

    _say(f"[bold]{each.name}[/]  {each.source}")
    keys = [key for key in result["rows"][0] if key not in ("least", "most")]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in keys:
        table.add_column(key.replace("_", " "), justify="right")
    for row in result["rows"]:
        table.add_row(*(_text(row[key]) for key in keys))
    console().print(table)
    for sentence in result["holds"]:
        _say(f"{'true ' if sentence['true'] else 'FALSE'}  {sentence['sentence']}")
    _say(f"Not from here: {each.note}\n")


def _text(value: Any) -> str:
    return "never" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def _say(text: str) -> None:
    console().print(text, soft_wrap=True)


def _plot(chosen: list[Any], found: list[dict[str, Any]], file: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4 * len(chosen)), layout="constrained")
    for axes, each, result in zip(figure.subplots(len(chosen), squeeze=False)[:, 0], chosen, found, strict=True):
        rows = [{key: math.inf if value is None else value for key, value in row.items()} for row in result["rows"]]
        each.draw(axes, rows)
        axes.set_title(each.source.split(",")[0] + " " + each.source[-4:])
        axes.grid(True, alpha=0.3)
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)
    print(f"wrote {file}", file=sys.stderr)
