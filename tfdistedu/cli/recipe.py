"""`tfdistedu recipe list | show NAME | copy NAME`: standalone scripts to take away.

Recipes are read as files, never imported: reading one costs nothing, and its first lines say what it is.
"""

from __future__ import annotations

import ast
import difflib
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json
from tfdistedu.errors import BadInput

HEADINGS = ("Shows", "Run", "Avoids")

app = typer.Typer(
    help="Standalone scripts to copy: they import TensorFlow and nothing from here.", no_args_is_help=True
)


def recipes() -> dict[str, Traversable]:
    """Find the recipes.

    Returns:
        Each recipe's file by its name, in the order of the names.

    """
    found = (file for file in files("tfdistedu.recipes").iterdir() if file.name.endswith(".py"))
    return {
        file.name.removesuffix(".py"): file
        for file in sorted(found, key=lambda file: file.name)
        if not file.name.startswith("_")
    }


def head(source: str) -> dict[str, str]:
    """Read what a recipe says about itself.

    Args:
        source: The text of the recipe, which is parsed and not run.

    Returns:
        `summary`, the first line of its docstring, and `shows`, `run` and `avoids`, each as one line.

    Raises:
        BadInput: The docstring lacks one of them.

    """
    lines = (ast.get_docstring(ast.parse(source)) or "").splitlines()
    found = {"summary": lines[0] if lines else ""}
    heading = None
    for line in lines[1:]:
        first, colon, rest = line.partition(":")
        if colon and first in HEADINGS:
            heading, line = first.lower(), rest
        if heading:
            found[heading] = " ".join([*found.get(heading, "").split(), *line.split()])
    missing = [name for name in HEADINGS if not found.get(name.lower())]
    if missing or not found["summary"]:
        raise BadInput(f"the head of this recipe lacks {', '.join(missing) or 'a first line'}.")
    return found


def find(name: str) -> Traversable:
    """Find one recipe by its name.

    Args:
        name: Such as `mirrored_fit`; `mirrored-fit` and `mirrored_fit.py` are the same.

    Returns:
        Its file.

    Raises:
        BadInput: There is none of this name; the message names the nearest.

    """
    known = recipes()
    wanted = name.removesuffix(".py").replace("-", "_")
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
    raise BadInput(f"there is no recipe {name!r}. {hint}")


@app.command("list")
def list_command(json_file: str | None = JSON_OPTION) -> None:
    """Name each recipe, and say in one line what it is."""
    check_writable(json_file)
    heads = [{"name": name, **head(file.read_text(encoding="utf-8"))} for name, file in recipes().items()]
    write_json({"recipes": heads}, json_file)
    if json_file != "-":
        from rich.table import Table

        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column()
        for entry in heads:
            table.add_row(entry["name"], entry["summary"])
        console().print(table)


@app.command("show")
def show_command(name: str = typer.Argument(..., help="A name from `tfdistedu recipe list`.")) -> None:
    """Write a recipe to stdout, byte for byte."""
    sys.stdout.flush()
    sys.stdout.buffer.write(find(name).read_bytes())
    sys.stdout.buffer.flush()


@app.command("copy")
def copy_command(
    name: str = typer.Argument(..., help="A name from `tfdistedu recipe list`."),
    to: str = typer.Option(".", "--to", metavar="DIR", help="The folder to copy it into; it must exist."),
    force: bool = typer.Option(False, "--force", help="Overwrite a file of the same name."),
) -> None:
    """Copy a recipe into a folder, and print the path of the copy."""
    file = find(name)
    folder = Path(to)
    target = folder / file.name
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else f"does not exist; make it first: mkdir -p {to}"
        raise BadInput(f"recipe copy: the folder {to} {what}")
    try:
        # "x" makes the file or fails: nobody's work is overwritten, also when two copies run at once.
        with target.open("wb" if force else "xb") as copy:
            copy.write(file.read_bytes())
    except FileExistsError:
        raise BadInput(f"recipe copy: {target} exists already. Copy --to another folder, or use --force.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput(f"recipe copy: cannot write {target} ({reason}). Name another folder with --to.") from None
    print(target)
