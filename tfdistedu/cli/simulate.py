"""`tfdistedu simulate`: what would it cost on machines that one does not have? From formulas, in no time."""

from __future__ import annotations

import math
from typing import Any

import typer

from tfdistedu.cli import simulate_paper, simulate_training
from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json
from tfdistedu.cli.units import in_time, read_bytes
from tfdistedu.errors import BadInput

app = typer.Typer(help="Predict what distributed training would cost, from models.", no_args_is_help=True)

_MOST_RANKS = 10_000


@app.callback()
def _top() -> None:
    """Predict what distributed training would cost, from models."""


app.command("training", short_help="Accuracy against time on 1 to 10,000 workers.")(simulate_training.training)
app.command("paper", short_help="What papers found on asynchronous training, found again.")(simulate_paper.paper)


@app.command("allreduce", short_help="The time of one all-reduce for 2 to 10,000 ranks.")
def allreduce(
    ranks: str = typer.Option("2,4,8,16,64,256,1024,10000", "--ranks", "-n", help="Numbers of ranks, 2 to 10000."),
    size: str = typer.Option("100MB", "--bytes", "-b", help="Size of each rank's message: 4096, 25MB, 64KiB, ..."),
    link: str = typer.Option("10GbE", "--link", help="laptop, 10GbE, 100Gb or NVLink."),
    algorithms: str = typer.Option("all", "--algorithms", help="Names with commas between them, or all."),
    latency: float | None = typer.Option(None, "--latency", help="Seconds for a message, instead of the link's."),
    bandwidth: float | None = typer.Option(None, "--bandwidth", help="Bytes per second, instead of the link's."),
    reduce_speed: float | None = typer.Option(None, "--reduce-speed", help="Bytes per second that a rank can add."),
    plot: str | None = typer.Option(None, "--plot", metavar="FILE", help="Draw seconds over ranks: FILE.png or .svg."),
    json: str | None = JSON_OPTION,
) -> None:
    """Predict the time of one all-reduce for 2 to 10,000 ranks, and where one algorithm overtakes another."""
    check_writable(plot, json)
    _check_plot(plot)
    charges = _link(link, latency, bandwidth, reduce_speed)
    result = predict(_ranks(ranks), read_bytes(size, "--bytes"), charges, _algorithms(algorithms))
    result["link"] = {"name": _link_name(link), **result["link"]}
    write_json(result, json)
    if plot is not None:
        _plot(result, plot)
    if json != "-":
        _print(result)


def predict(ranks: list[int], n_bytes: float, link: Any, algorithms: list[str]) -> dict[str, Any]:
    """Return predicted seconds and crossings as plain data.

    Args:
        ranks: Numbers of ranks.
        n_bytes: Size of each rank's message, in bytes.
        link: A `tfdistedu.collectives.cost.Link`.
        algorithms: Names of all-reduce algorithms.

    Returns:
        What `--json` writes: for each number of ranks the rounds, messages, bytes and seconds of each algorithm, the
        fastest, and the fastest for each range of sizes.

    """
    from tfdistedu.collectives.formulas import price_for

    rows = []
    for n in ranks:
        prices = {name: price_for(name, n) for name in algorithms}
        seconds = {name: each.seconds(n_bytes, link) for name, each in prices.items()}
        rows.append(
            {
                "ranks": n,
                "fastest": min(seconds, key=seconds.get),
                "best_for": _best_for(prices, link),
                "algorithms": {
                    name: {
                        "rounds": each.n_rounds,
                        "messages": each.messages,
                        "bytes": float(each.bytes) * n_bytes,
                        "seconds": seconds[name],
                    }
                    for name, each in prices.items()
                },
            }
        )
    return {"bytes": n_bytes, "link": link._asdict(), "rows": rows}


def _best_for(prices: dict[str, Any], link: Any) -> list[dict[str, Any]]:
    """Return, from the smallest message up, which algorithm is fastest from which size on."""
    from tfdistedu.collectives.cost import crossing

    size, best = 0.0, min(prices, key=lambda name: (prices[name].seconds(0, link), prices[name].seconds(1e12, link)))
    result = [{"from_bytes": 0.0, "algorithm": best}]
    while True:
        later = []
        for name, each in prices.items():
            # Only who has fewer bytes can overtake; of those the one that does so first, and then the steepest.
            at = crossing(prices[best], each, link)
            if at is not None and at > size and each.seconds(2 * at, link) < prices[best].seconds(2 * at, link):
                later.append((at, each.seconds(1e15, link), list(prices).index(name), name))
        if not later:
            return result
        size, *_, best = min(later)
        result.append({"from_bytes": size, "algorithm": best})


def _ranks(text: str) -> list[int]:
    """Read "2,4,8"."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise BadInput(f"--ranks {text!r}: write whole numbers with commas between them, like 2,8,64.") from None
    for n in numbers:
        if not 2 <= n <= _MOST_RANKS:
            raise BadInput(f"--ranks {n}: an all-reduce is simulated for 2 to {_MOST_RANKS} ranks.")
    return sorted(set(numbers))


def _link(name: str, latency: float | None, bandwidth: float | None, reduce_speed: float | None) -> Any:
    """Return the preset of this name, with the caller's own numbers put in."""
    from tfdistedu.collectives.cost import PRESETS

    preset = PRESETS[_link_name(name)]
    given = {"latency": latency, "bandwidth": bandwidth, "reduce_speed": reduce_speed}
    for what, value in given.items():
        least = value is not None and (value >= 0 if what == "latency" else value > 0)
        if value is not None and not (least and math.isfinite(value)):
            raise BadInput(f"--{what.replace('_', '-')} {value:g}: it must be a finite number above zero.")
    return preset._replace(**{what: value for what, value in given.items() if value is not None})


def _link_name(name: str) -> str:
    """Return a preset's name as it is written in the table, or say that there is none."""
    import difflib

    from tfdistedu.collectives.cost import PRESETS

    known = {each.lower(): each for each in PRESETS}
    if name.lower() not in known:
        near = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f" Did you mean {known[near[0]]}?" if near else ""
        raise BadInput(f"there is no link {name!r}.{hint} There are: {', '.join(PRESETS)}.")
    return known[name.lower()]


def _algorithms(text: str) -> list[str]:
    """Read "ring,tree", or all that have a formula."""
    from tfdistedu.collectives.algorithms import find
    from tfdistedu.collectives.formulas import FORMULAS

    if text.strip().lower() == "all":
        return list(FORMULAS)
    return list(dict.fromkeys(find(name, "all_reduce").__name__ for name in text.split(",")))


def _check_plot(plot: str | None) -> None:
    """Refuse, before the work, a kind of file that cannot be drawn."""
    if plot is not None and not plot.lower().endswith((".png", ".svg", ".pdf")):
        raise BadInput(f"--plot {plot}: the name must end in .png, .svg or .pdf.")


def _size(n_bytes: float) -> str:
    """Write a size with three digits: "66.1 kB"."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.3g} {unit}" if n_bytes < 1e12 else f"{n_bytes / factor:.0f} {unit}"
    return f"{n_bytes:.0f} B"


def _print(result: dict[str, Any]) -> None:
    """Print one table: ranks down, algorithms across; on a narrow terminal as many across as fit."""
    from rich.table import Table

    out = console()
    link = result["link"]
    out.print(
        f"One all-reduce of {_size(result['bytes'])} a rank over {link['name']}: {in_time(link['latency'])} a message, "
        f"{_size(link['bandwidth'])}/s, adds {_size(link['reduce_speed'])}/s. A model, not a measurement."
    )
    names = list(result["rows"][0]["algorithms"])
    across = max(1, (out.width - 6) // 14)
    for first in range(0, len(names), across):
        table = Table("ranks", box=None, pad_edge=False, header_style="bold")
        for name in names[first : first + across]:
            table.add_column(name.replace("_", " "), justify="right", max_width=12)
        for row in result["rows"]:
            cells = [
                in_time(row["algorithms"][name]["seconds"]) + ("*" if name == row["fastest"] else " ")
                for name in names[first : first + across]
            ]
            table.add_row(str(row["ranks"]), *cells)
        out.print(table)
    if {"ring", "direct"} <= set(names):
        out.print("In this model ring and direct cost the same.")
    out.print("* the fastest here. The fastest by size of message:")
    for row in result["rows"]:
        steps = [f"{each['algorithm']} from {_size(each['from_bytes'])}" for each in row["best_for"]]
        out.print(f"{row['ranks']} ranks: {', '.join(steps)}")


def _plot(result: dict[str, Any], file: str) -> None:
    """Draw seconds over ranks, both on logarithmic axes."""
    import sys

    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    ranks = [row["ranks"] for row in result["rows"]]
    for number, name in enumerate(result["rows"][0]["algorithms"]):
        seconds = [row["algorithms"][name]["seconds"] for row in result["rows"]]
        axes.plot(
            ranks, seconds, "-" if number % 2 else "--", marker="osD^vPX*"[number % 8], label=name.replace("_", " ")
        )
    axes.set(xscale="log", yscale="log", xlabel="ranks", ylabel="seconds (predicted)")
    axes.set_title(f"All-reduce of {_size(result['bytes'])} a rank over {result['link']['name']}: a model")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(file)
    print(f"wrote {file}", file=sys.stderr)
