"""How every command prints: results to stdout, progress to stderr, JSON where asked.

Rich decides about colour (none in a pipe, none with NO_COLOR) and about width; a pipe gets 100 columns, so that a
table never wraps in a log.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tfdistedu.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

JSON_OPTION = typer.Option(None, "--json", metavar="FILE", help="Write the result as JSON to FILE, - for stdout.")


def console(stderr: bool = False) -> Console:
    """Return a rich console for stdout or stderr.

    Args:
        stderr: Whether it writes to stderr (progress, logs) instead of stdout (results).

    Returns:
        The console; 100 columns wide where the stream is not a terminal and COLUMNS gives no width.

    """
    import os

    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    columns = os.environ.get("COLUMNS", "")
    width = None if stream.isatty() or (columns.isdigit() and int(columns)) else 100
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def check_writable(*files: str | None) -> None:
    """Refuse, before the work starts, a result file that could not be written after it.

    Args:
        *files: Paths; `None` and `-` are fine.

    Raises:
        BadInput: A path is empty, a folder, in a folder that does not exist, cannot be opened for writing, or is named
            twice.

    """
    named = [Path(file).resolve() for file in files if file not in (None, "-")]
    if len(set(named)) < len(named):
        raise BadInput(f"{named[-1]} is named for two results; give each a file of its own.")
    for file in files:
        if file is None or file == "-":
            continue
        path = Path(file)
        if not file:
            raise BadInput("a result file has no name; name one, or - for stdout.")
        if path.is_dir():
            raise BadInput(f"{file} is a folder; name a file in it.")
        if not path.resolve().parent.is_dir():
            raise BadInput(f"the folder of {file} does not exist; make it first: mkdir -p {path.parent}")
        is_new = not path.exists()
        if is_new or path.is_file():  # opening a pipe would end what reads from it
            with _or_say_why(file), path.open("ab"):
                pass
        if is_new:
            path.unlink()


def write_json(data: Any, file: str | None) -> None:
    """Write data as JSON to a file, to stdout for `-`, nowhere for `None`.

    Args:
        data: Anything that `json.dumps` takes; NaN and infinities are refused, for JSON has none.
        file: A path, `-`, or `None`.

    """
    if file is None:
        return
    text = json.dumps(data, indent=2, allow_nan=False) + "\n"
    if file == "-":
        sys.stdout.write(text)
    else:
        write_text(text, file)


def write_text(text: str, file: str) -> None:
    """Write a text to a file.

    Args:
        text: What to write.
        file: A path.

    Raises:
        BadInput: It cannot be written; the message says why.

    """
    with _or_say_why(file):
        Path(file).write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _or_say_why(file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {file} ({(error.strerror or str(error)).lower()}). Name another file.") from None
