"""`tfdistedu demo`: one device against replicas and workers, on real digits, in about half a minute."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json
from tfdistedu.cli.tidy import own_temporary_folder

if TYPE_CHECKING:
    from tfdistedu.bench.demo import Result, Row

SVG_OPTION = typer.Option(None, "--svg", metavar="FILE", help="Draw the loss curves into FILE.")


def demo(json_file: str | None = JSON_OPTION, svg_file: str | None = SVG_OPTION) -> None:
    """Train one network on one device, on replicas and on workers, and show that all did the same."""
    check_writable(json_file, svg_file)
    with own_temporary_folder():
        result = _run()
    if json_file != "-":
        _print(result)
    write_json(result.as_json(), json_file)
    if svg_file is not None:
        _draw(result, svg_file)
    for failure in result.failures:
        print(f"not the same: {failure}", file=sys.stderr)
    raise typer.Exit(1 if result.failures else 0)


def _run() -> Result:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    err = console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description:24}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        waking = progress.add_task("waking TensorFlow", total=None)
        from tfdistedu.bench import demo as bench
        from tfdistedu.devices import virtual_cpus

        if not bench.tf.config.list_physical_devices("GPU"):
            virtual_cpus(bench.N_REPLICAS)
        progress.remove_task(waking)

        def on_way(way: object) -> None:
            progress.add_task(way.name, total=bench.EPOCHS)
            if not err.is_terminal:
                print(f"training: {way.name} ({bench.EPOCHS} epochs)", file=sys.stderr, flush=True)

        return bench.run_all(on_way, lambda: progress.advance(progress.task_ids[-1]))


def _print(result: Result) -> None:
    from rich.table import Table

    from tfdistedu.bench import demo as bench

    out = console()
    table = Table(
        title="One network, the same digits in the same order", title_justify="left", box=None, pad_edge=False
    )
    table.add_column("way")
    for column in ("replicas", "test\naccuracy", "furthest weight\nfrom one device", "examples/s"):
        table.add_column(column, justify="right")
    for row in result.rows:
        good = row.max_weight_difference is None or row.max_weight_difference < bench.TOLERANCE
        table.add_row(*_cells(row), style=None if good else "bold red")
    for row, _ in result.counterexamples:
        table.add_row(*_cells(row), style="yellow")
    out.print(table)
    out.print()
    if not result.failures:
        same = "; ".join(row.way for row in result.rows[1:] if row.max_weight_difference is not None)
        out.print(f"The same: {same}. They hold one device's weights, within {bench.TOLERANCE:.0e} (float32 rounding).")
    for row, reason in result.counterexamples:
        out.print(f"Not the same: {row.way}. {reason[0].upper()}{reason[1:]}.")
    out.print()
    out.print(
        f"Batches of {bench.GLOBAL_BATCH} divide evenly by {bench.N_REPLICAS}, because `fit` weighs a ragged "
        "last batch otherwise (the custom loop would not mind). Virtual devices share this machine's cores: they show "
        "that a program is right, and make nothing faster."
    )


def _cells(row: Row) -> list[str]:
    distance = row.max_weight_difference
    far = "-" if distance is None else "0" if distance == 0 else f"{distance:.1e}"
    return [row.way, str(row.replicas), f"{row.accuracy:.3f}", far, f"{row.examples_per_s:,.0f}"]


def _draw(result: Result, file: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    # A way that did the same lies under the next one: the first are drawn wide, the last narrow.
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for index, (way, losses) in enumerate(result.losses.items()):
        wrong = any(row.way == way for row, _ in result.counterexamples)
        width = 1.8 if wrong else max(1.2, 7.0 - 2.2 * index)
        axes.plot(range(1, len(losses) + 1), losses, label=way, linewidth=width, linestyle="--" if wrong else "-")
    axes.set(
        xlabel="epoch", ylabel="mean training loss", title="The same network, trained in several ways", yscale="log"
    )
    axes.legend()
    figure.savefig(file, format="svg", metadata={"Date": None, "Title": "Loss curves of each way of training"})
    pyplot.close(figure)
    print(f"loss curves: {file}", file=sys.stderr)
