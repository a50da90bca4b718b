"""The command `tfdistedu`: one file a command, and one place where errors become exit statuses.

Exit status: 0 done and right, 1 ran and found something wrong, 2 bad usage, 3 this machine cannot (the message says
what is missing), 124 a deadline passed, 130 Ctrl-C, 143 SIGTERM.

Results go to stdout, progress and logs to stderr. No command module imports TensorFlow at its top: `--help` answers
at once, and a command can split the CPU before TensorFlow wakes up.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading

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


# One line a command; its file imports nothing heavy at its top. Where the first sentence of its help is longer than a
# line of the list, `short_help` stands there, or the list would end in "...".
from tfdistedu.cli import bench, demo, doctor, draw, explain, learn, recipe, run, simulate  # noqa: E402

app.command(short_help="One device against four replicas, on real digits.")(demo.demo)
app.command(short_help="Any script as a cluster on this machine.", context_settings=run.SETTINGS)(run.run)
app.command(short_help="Why a cluster does not start; without TensorFlow.")(doctor.doctor)
app.command(short_help="What a code means, or what a log really says.")(explain.explain)
app.add_typer(recipe.app, name="recipe", short_help="Standalone scripts to copy: TensorFlow and Keras alone.")
app.command(short_help="Draw an all-reduce, or one of its kin, round by round.")(draw.draw)
app.add_typer(learn.app, name="learn", short_help="Lessons with exercises: what is next, and is it right?")
app.add_typer(simulate.app, name="simulate", short_help="Predict what distributed training would cost.")
app.add_typer(bench.app, name="bench")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with the status that the table above promises.

    Args:
        arguments: The words after `tfdistedu`; `None` takes them from `sys.argv`.

    Raises:
        SystemExit: Always, with the exit status.

    """
    _open_closed_streams()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what a command started ends with it
    try:
        status = app(args=arguments, standalone_mode=False)
        sys.stdout.flush()
    except TfdisteduError as error:
        print(f"tfdistedu: {error}", file=sys.stderr)
        raise SystemExit(error.exit_status) from None
    except _BadUsage as error:
        error.show()
        raise SystemExit(2) from None
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # Whoever read the output has enough, or its disk is full. What is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno == errno.ENOSPC:
            print("tfdistedu: the disk of the output is full. Make room, and run it again.", file=sys.stderr)
            raise SystemExit(3) from None
        status = 1
    except (typer.Abort, KeyboardInterrupt):
        status = 130
    if status == 130:  # typer gives this for Ctrl-C, without a word
        print("tfdistedu: interrupted", file=sys.stderr)
    raise SystemExit(status or 0)


def _open_closed_streams() -> None:
    """Let what is written to a closed stdout or stderr vanish, and not into the next file that is opened."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            stream = open(descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
