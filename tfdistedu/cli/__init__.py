"""The command `tfdistedu`: one file a command, and one place where errors become exit statuses.

Exit status: 0 done and right, 1 ran and found something wrong, 2 bad usage, 3 this machine cannot (the message says
what is missing), 124 a deadline passed, 130 Ctrl-C.

Results go to stdout, progress and logs to stderr. No command module imports TensorFlow at its top: `--help` answers
at once, and a command can split the CPU before TensorFlow wakes up.
"""

from __future__ import annotations

import sys

import typer

from tfdistedu import __version__
from tfdistedu.errors import TfdisteduError

# Typer carries its own copy of click's errors; this is the public way to their common base.
_BadUsage = typer.BadParameter.__base__

app = typer.Typer(
    name="tfdistedu",
    help="Distributed training with TensorFlow, to read, to run and to copy.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"tfdistedu {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Distributed training with TensorFlow, to read, to run and to copy."""


# One line a command; its file imports nothing heavy at its top.
from tfdistedu.cli import bench, demo, draw, recipe, run, simulate  # noqa: E402

app.command()(demo.demo)
app.command(context_settings=run.SETTINGS)(run.run)
app.add_typer(recipe.app, name="recipe")
app.command()(draw.draw)
app.add_typer(simulate.app, name="simulate")
app.add_typer(bench.app, name="bench")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with the status that the table above promises.

    Args:
        arguments: The words after `tfdistedu`; `None` takes them from `sys.argv`.

    Raises:
        SystemExit: Always, with the exit status.

    """
    try:
        status = app(args=arguments, standalone_mode=False)
    except TfdisteduError as error:
        print(f"tfdistedu: {error}", file=sys.stderr)
        raise SystemExit(error.exit_status) from None
    except _BadUsage as error:
        error.show()
        raise SystemExit(2) from None
    except (typer.Abort, KeyboardInterrupt):
        status = 130
    if status == 130:  # typer gives this for Ctrl-C, without a word
        print("tfdistedu: interrupted", file=sys.stderr)
    raise SystemExit(status or 0)
