"""`tfdistedu bench links`: what links cost here, and how well that predicts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json
from tfdistedu.cli.units import in_time
from tfdistedu.errors import BadInput

if TYPE_CHECKING:
    from tfdistedu.bench.links import Result


def links(
    json: str | None = JSON_OPTION,
    ranks: str = typer.Option("2,4", "--ranks", metavar="N,...", help="Numbers of ranks."),
    rounds: int = typer.Option(3, "--rounds", metavar="N", help="Turns that each algorithm takes at each size."),
    svg: str | None = typer.Option(None, "--svg", metavar="FILE", help="Draw predicted and measured times into FILE."),
    keep: bool = typer.Option(True, "--keep/--no-keep", help="Keep the prices for all who join on this machine."),
) -> None:
    """Measure latency, bandwidth and reduction speed of the links here (about a minute).

    The prices are kept in the user's cache folder: from then on they choose each all-reduce's algorithm by its size.
    Half of the sizes are predicted only, to show how good the predictions are. Measure while nothing else runs.
    """
    check_writable(json, svg)
    try:
        numbers = [int(number) for number in ranks.split(",")]
    except ValueError:
        raise BadInput(f"--ranks {ranks}: whole numbers with commas between them, such as 2,4.") from None
    from tfdistedu.bench.links import measure
    from tfdistedu.links.prices import store

    err = console(stderr=True)
    with err.status("") as status:

        def show(text: str) -> None:
            status.update(text)
            if not err.is_terminal:
                print(f"measuring: {text}", file=sys.stderr, flush=True)

        result = measure(numbers, rounds, on_block=show)
    if json != "-":
        _print(result)
    write_json(result.as_json(), json)
    if svg is not None:
        _draw(result, svg)
        print(f"plot: {svg}", file=sys.stderr)
    if keep:
        print(f"kept for all who join on this machine: {store(result.prices)}", file=sys.stderr)


def _print(result: Result) -> None:
    from rich import box
    from rich.table import Table

    from tfdistedu.bench.allreduce import in_units

    out = console()
    prices = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("link", "ranks", "latency", "overhead", "bandwidth", "additions"):
        prices.add_column(name, justify="left" if name == "link" else "right")
    errors = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("link", "ranks", "median", "worst", "of"):
        errors.add_column(name, justify="left" if name in ("link", "of") else "right")
    choices = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("link", "ranks", "from", "is chosen", "beside the fastest"):
        choices.add_column(name, justify="right" if name in ("ranks", "from") else "left")
    for link, by_ranks in result.prices.items():
        for ranks, costs in by_ranks.items():
            median, worst = result.judge(link, int(ranks))
            speeds = (f"{costs[key] / 1e9:.3g} GB/s" for key in ("bandwidth", "reduce_speed"))
            times = (in_time(costs[key]) for key in ("latency", "overhead"))
            prices.add_row(link, ranks, *times, *speeds)
            case = f"{worst.algorithm}, {in_units(worst.bytes)}"
            errors.add_row(link, ranks, f"{median:.0%}", f"{worst.error:+.0%}", case)
            before = None
            for size, name in result.chosen(link, int(ranks)).items():
                if name != before:
                    choices.add_row(link, ranks, in_units(size), name, _beside(result, link, int(ranks), size, name))
                before = name
    out.print("What links cost here:")
    out.print(prices)
    out.print("How far predictions are off, from 1 MiB, for sizes that were not fitted:")
    out.print(errors)
    out.print("What these prices choose:")
    out.print(choices)


def _beside(result: Result, link: str, ranks: int, size: int, name: str) -> str:
    """Say how the choice did, of all algorithms that were measured at this size."""
    took = {r.algorithm: r.seconds for r in result.rows if (r.link, r.ranks, r.bytes) == (link, ranks, size)}
    best = min(took, key=took.__getitem__)
    return "it is" if best == name else f"{took[name] / took[best]:.2f} times {best}"


def _draw(result: Result, file: str) -> None:
    from matplotlib.figure import Figure

    from tfdistedu.bench.allreduce import in_units

    panels = [(link, int(ranks)) for link, by_ranks in result.prices.items() for ranks in by_ranks]
    across = len(panels) // 2
    figure = Figure(figsize=(5.5 * across, 9), layout="constrained")
    names = list(dict.fromkeys(row.algorithm for row in result.rows))
    for (link, ranks), axes in zip(panels, figure.subplots(2, across, squeeze=False).flat, strict=True):
        for number, name in enumerate(names):
            rows = [row for row in result.rows if (row.link, row.ranks, row.algorithm) == (link, ranks, name)]
            sizes, color = [row.bytes for row in rows], f"C{number}"
            axes.plot(sizes, [row.predicted for row in rows], "-", color=color, label=name, linewidth=1)
            for fitted, face in ((True, color), (False, "white")):
                some = [row for row in rows if row.fitted == fitted]
                axes.plot([r.bytes for r in some], [r.seconds for r in some], "o^sDvP*X"[number % 8], color=color,
                          markerfacecolor=face, linestyle="none", markersize=6)  # fmt: skip
        ticks = sorted({row.bytes for row in result.rows})[::2]
        axes.set(xscale="log", yscale="log", xlabel="size of a message", title=f"{link}, {ranks} ranks")
        axes.set_xticks(ticks, [in_units(size) for size in ticks])
        axes.minorticks_off()
        axes.grid(True, which="major", alpha=0.3)
        axes.set_ylabel("seconds of an all-reduce")
    figure.axes[0].legend(title="lines: predicted · marks: measured\n(hollow: sizes that were not fitted)")
    title = "Predicted and measured time of each all-reduce over size"
    figure.savefig(file, format="svg", metadata={"Date": None, "Title": title})
