"""`tfdistedu draw`: the picture of an algorithm, in the terminal, as SVG and as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json, write_text
from tfdistedu.errors import BadInput

if TYPE_CHECKING:
    from tfdistedu.collectives.draw import Picture
    from tfdistedu.collectives.schedule import Schedule

_MOST_RANKS = 256


def draw(
    algorithm: str = typer.Argument(..., metavar="ALGORITHM", help="ring, tree, naive, ...; see --list."),
    ranks: int = typer.Option(4, "--ranks", "-n", help="Number of ranks, 1 to 12 (JSON alone: up to 256)."),
    root: int = typer.Option(0, "--root", help="Where a broadcast starts and a reduce ends."),
    svg: str | None = typer.Option(None, "--svg", metavar="FILE", help="Write an SVG to FILE, - for stdout."),
    json: str | None = JSON_OPTION,
    _: bool = typer.Option(False, "--list", is_eager=True, callback=lambda asked: _list(asked), help="List them all."),
) -> None:
    """Draw who has what after each round of an algorithm: letters are ranks, rows are chunks."""
    from tfdistedu.collectives.draw import MAX_RANKS, as_json, picture

    check_writable(svg, json)
    if svg == "-" and json == "-":
        raise BadInput("only one of --svg and --json can go to stdout.")
    schedule, goal = _schedule(algorithm, ranks, root)
    # JSON alone needs no picture, so it may be larger.
    shown = None if json == "-" and svg is None and ranks > MAX_RANKS else picture(schedule, goal, root)
    write_json(as_json(schedule, goal, root) if json else None, json)
    if svg is not None:
        from tfdistedu.collectives.draw_svg import svg as as_svg

        _write(as_svg(shown), svg)
    if "-" not in (svg, json):
        _print(shown)


def _schedule(algorithm: str, ranks: int, root: int) -> tuple[Schedule, str]:
    """Return the schedule and its goal."""
    from tfdistedu.collectives.algorithms import find
    from tfdistedu.collectives.draw import MAX_RANKS

    function = find(algorithm)
    if not 1 <= ranks <= _MOST_RANKS:
        raise BadInput(f"--ranks {ranks}: give 1 to {MAX_RANKS} for a picture, up to {_MOST_RANKS} for JSON alone.")
    if function.goal in ("broadcast", "reduce"):
        return function(ranks, root=root), function.goal
    if root != 0:
        raise BadInput(f"{function.__name__} is an {function.goal} and has no root; leave --root out.")
    return function(ranks), function.goal


def _list(asked: bool) -> None:
    """Print the names of all algorithms, by what they are for."""
    if not asked:
        return
    from tfdistedu.collectives.algorithms import ALGORITHMS
    from tfdistedu.collectives.schedule import GOALS

    for goal in GOALS:
        print(f"{goal}: " + ", ".join(name for name, function in ALGORITHMS.items() if function.goal == goal))
    raise typer.Exit


def _write(text: str, file: str) -> None:
    """Write to a file, and say so on stderr; or to stdout for `-`."""
    if file == "-":
        sys.stdout.write(text)
    else:
        write_text(text, file)
        print(f"wrote {file}", file=sys.stderr)


def _print(shown: Picture) -> None:
    """Print the picture, in colour where the terminal has it."""
    from rich.text import Text

    from tfdistedu.collectives.draw_terminal import lines

    out = console()
    for line in lines(shown, out.width):
        out.print(Text.assemble(*line), no_wrap=True, crop=False)
