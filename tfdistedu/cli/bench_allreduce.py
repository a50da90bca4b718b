"""`tfdistedu bench allreduce`: our all-reduce beside TensorFlow's, gloo's and OpenMPI's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json
from tfdistedu.cli.units import in_time, read_bytes
from tfdistedu.errors import BadInput

if TYPE_CHECKING:
    from tfdistedu.bench.allreduce import Result, Row


def allreduce(
    json: str | None = JSON_OPTION,
    ranks: str = typer.Option("2,4", "--ranks", metavar="N,...", help="Numbers of ranks."),
    sizes: str = typer.Option(
        "4KiB,64KiB,1MiB,16MiB,100MiB", "--sizes", metavar="SIZE,...", help="Sizes of a message."
    ),
    rounds: int = typer.Option(5, "--rounds", metavar="N", help="Turns that each implementation takes at each size."),
    only: str | None = typer.Option(None, "--only", metavar="NAME,...", help="These implementations alone."),
    peers: str = typer.Option(".venv-peers", "--peers", metavar="DIR", help="What `make peers` made."),
    svg: str | None = typer.Option(None, "--svg", metavar="FILE", help="Draw bus bandwidth over size into FILE."),
) -> None:
    """Time all-reduces: ours, TensorFlow's ring, gloo and OpenMPI (two to three minutes).

    Peers that are not here are named, and left out. `make peers` brings them.
    """
    check_writable(json, svg)
    from tfdistedu.bench.allreduce import check

    n_ranks, n_bytes = _numbers(ranks), [_whole(read_bytes(size, "--sizes")) for size in sizes.split(",")]
    check(n_ranks, n_bytes, rounds)
    result = _run(n_ranks, n_bytes, rounds, only, Path(peers))
    if json != "-":
        _print(result, n_ranks)
    write_json(result.as_json(), json)
    if svg is not None:
        _draw(result, n_ranks, svg)
    err = console(stderr=True)
    for name, why in result.missing.items():
        err.print(f"left out: {name}. {why}", markup=False)
    for name, why in result.failed.items():
        err.print(f"failed: {name} {why}", markup=False)
    raise typer.Exit(1 if result.failed else 0)


def _run(ranks: list[int], sizes: list[int], rounds: int, only: str | None, peers: Path) -> Result:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from tfdistedu.bench.allreduce import measure
    from tfdistedu.bench.implementations import IMPLEMENTATIONS

    names = [one.name for one in IMPLEMENTATIONS]
    asked = names if only is None else only.split(",")
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise BadInput(f"--only {unknown[0]}: there is no such implementation; there are {', '.join(names)}.")
    chosen = [one for one in IMPLEMENTATIONS if one.name in asked]
    err = console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=err, auto_refresh=False, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("", total=len(ranks) * len(chosen) * (1 + len(sizes) * rounds))
        seen = set()

        def show(text: str) -> None:
            progress.update(task, advance=1, description=text, refresh=True)
            line = text.split(", round")[0].split(", ", 1)[-1]  # in a log, one line for each size
            if not err.is_terminal and "starting" not in text and line not in seen:
                seen.add(line)
                print(f"measuring: {line}", file=sys.stderr, flush=True)

        return measure(ranks, sizes, rounds, implementations=chosen, peers=peers, on_block=show)


def _print(result: Result, ranks: list[int]) -> None:
    from rich import box
    from rich.table import Table

    from tfdistedu.bench.allreduce import in_units

    out = console()
    for n in ranks:
        rows = [row for row in result.rows if row.ranks == n]
        sizes = list(dict.fromkeys(row.bytes for row in rows))
        out.print(f"All-reduce of float32 on {n} ranks: a call's median time, and busbw in GB/s")
        # As many sizes side by side as the terminal is wide; the rest below.
        across = max(1, (out.width - 22) // 19)
        for first in range(0, len(sizes), across):
            table = Table(box=box.SIMPLE, pad_edge=False)
            table.add_column("implementation")
            for size in sizes[first : first + across]:
                table.add_column(in_units(size), justify="right")
            for name in dict.fromkeys(row.implementation for row in rows):
                cells = {row.bytes: _cell(row) for row in rows if row.implementation == name}
                table.add_row(name, *(cells.get(size, "-") for size in sizes[first : first + across]))
            out.print(table)
    if result.rows:
        out.print(
            "Medians over all calls, a call's time is its slowest rank's; the middle half of the calls lies within "
            f"{_spread(result.rows):.0%} of it, in the median of the rows. Only ratios within one run mean something."
        )


def _cell(row: Row) -> str:
    return f"{in_time(row.seconds):>7} {row.busbw:7.3g}"


def _spread(rows: list[Row]) -> float:
    import statistics

    return statistics.median(max(row.high - row.seconds, row.seconds - row.low) / row.seconds for row in rows)


def _draw(result: Result, ranks: list[int], file: str) -> None:
    from matplotlib.figure import Figure

    from tfdistedu.bench.allreduce import in_units

    figure = Figure(figsize=(5 * len(ranks), 4.5), layout="constrained")
    panels = figure.subplots(1, len(ranks), squeeze=False, sharey=True)[0]
    names = list(dict.fromkeys(row.implementation for row in result.rows))
    for n, axes in zip(ranks, panels, strict=True):
        for number, name in enumerate(names):
            rows = [row for row in result.rows if (row.implementation, row.ranks) == (name, n)]
            if not rows:
                continue
            per_second = [row.bytes * 2 * (n - 1) / n / 1e9 for row in rows]
            sizes = [row.bytes for row in rows]
            style = {"marker": "osD^vPX*"[number % 8], "color": f"C{number}"}
            axes.plot(sizes, [row.busbw for row in rows], "-" if number % 2 else "--", label=name, **style)
            low = [work / row.high for work, row in zip(per_second, rows, strict=True)]
            high = [work / row.low for work, row in zip(per_second, rows, strict=True)]
            axes.vlines(sizes, low, high, color=f"C{number}", alpha=0.4, linewidth=3)
        sizes = sorted({row.bytes for row in result.rows})
        axes.set(xscale="log", yscale="log", xlabel="size of a message", title=f"{n} ranks")
        axes.set_xticks(sizes, [in_units(size) for size in sizes])
        axes.minorticks_off()
        axes.grid(True, which="major", alpha=0.3)
    panels[0].set_ylabel("busbw, GB/s (bars: the middle half)")
    panels[0].legend()
    figure.savefig(file, format="svg", metadata={"Date": None, "Title": "Bus bandwidth of each all-reduce over size"})
    print(f"plot: {file}", file=sys.stderr)


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise BadInput(f"--ranks {text}: whole numbers with commas between them, such as 2,4.") from None


def _whole(size: float) -> int:
    if size != int(size):
        raise BadInput(f"--sizes {size:g}: a size is a whole number of bytes.")
    return int(size)
