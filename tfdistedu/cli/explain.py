"""`tfdistedu explain [CODE | FILE | -]`: what a code means, or what a log really says."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json
from tfdistedu.errors import BadInput


def explain(
    what: str | None = typer.Argument(None, metavar="[CODE|FILE|-]", help="A code, a log, or - for stdin."),
    json_file: str | None = JSON_OPTION,
) -> int:
    """Say what a code means, or which known messages stand in a log; 1: none is known. Alone it lists all codes."""
    check_writable(json_file)
    if what is None:
        return _list(json_file)
    text = _log(what)
    return _code(what, json_file) if text is None else _explain_log(text, json_file)


def _log(what: str) -> str | None:
    """Return the log, or `None` where a code is asked for."""
    from tfdistedu.cluster.explain import BY_CODE

    if what == "-":
        return sys.stdin.buffer.read().decode("utf-8", errors="replace")
    if what in BY_CODE:
        return None
    path = Path(what)
    try:
        if path.is_dir():
            raise BadInput(f"explain: {what} is a folder; name a log in it.")
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
    except BadInput:
        raise
    except (OSError, ValueError) as error:
        if len(what) > 200 or " " in what or isinstance(error, ValueError):
            return what  # no name at all: a line of a log, pasted
        raise BadInput(f"explain: cannot read {what} ({(error.strerror or str(error)).lower()}).") from None


def _list(json_file: str | None) -> int:
    from tfdistedu.cluster.explain import BY_CODE

    entries = [{"code": code, "title": entry.title} for code, entry in BY_CODE.items()]
    write_json({"codes": entries}, json_file)
    if json_file != "-":
        for entry in entries:
            print(f"{entry['code']:<28} {entry['title']}")
    return 0


def _code(code: str, json_file: str | None) -> int:
    from tfdistedu.cluster.explain import explain_code, explain_log

    if found := explain_log(code):  # a line of a log, pasted
        return _show(found, json_file)
    entry = explain_code(code)
    write_json(dataclasses.asdict(entry), json_file)
    if json_file != "-":
        out = console()
        out.print(f"{entry.code}: {entry.title}", markup=False, soft_wrap=True)
        severity = getattr(entry, "severity", None)
        if severity:
            out.print({"depends": "an error or a warning"}.get(severity, f"a{'n' * (severity == 'error')} {severity}"))
        out.print(getattr(entry, "why", None) or entry.cause, markup=False)
        if hasattr(entry, "remedy"):
            out.print(entry.remedy, markup=False)
        if hasattr(entry, "example"):
            out.print(f"wrong: {_cut(entry.example)}", markup=False, soft_wrap=True)
            out.print(f"right: {_cut(entry.mended)}", markup=False, soft_wrap=True)
    return 0


def _cut(text: str) -> str:
    text = text.replace("\ufeff", "\\ufeff").rstrip()
    return text or '""'


def _explain_log(text: str, json_file: str | None) -> int:
    from tfdistedu.cluster.explain import explain_log

    return _show(explain_log(text), json_file)


def _show(found: list, json_file: str | None) -> int:
    write_json({"found": [one.as_json() for one in found]}, json_file)
    if json_file != "-":
        out = console()
        for one in found:
            out.print(f"{one.message.code}: {one.message.title}", markup=False, style="bold", soft_wrap=True)
            times = f", on {one.count} lines" if one.count > 1 else ""
            out.print(f"    line {one.line}{times}: {one.text}", markup=False, soft_wrap=True)
            out.print(f"    {one.message.cause}", markup=False, soft_wrap=True)
            out.print(f"    {one.message.remedy}", markup=False, soft_wrap=True)
        if not found:
            out.print("No message that is known here.")
    return 0 if found else 1
