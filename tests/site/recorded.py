"""Record what the programs of the site print: `python -m tests.site.recorded` writes docs/recorded/*.txt again.

The pages include these files; a test runs the programs and compares.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.fresh_process import ROOT, FreshProcesses

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
RECORDED = ROOT / "docs" / "recorded"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def run(example: Path, fresh_processes: FreshProcesses) -> str:
    """Run a program of the site in a process and a folder of its own; its output, or an error that shows all."""
    finished = fresh_processes.run(example)
    if finished.status or finished.stderr:
        raise AssertionError(f"{example.name} ended with status {finished.status}:\n{finished.stdout}{finished.stderr}")
    return finished.stdout


def words_and_numbers(text: str) -> tuple[str, list[float]]:
    """Take a text apart: its words with `#` for each number, and the numbers."""
    return _NUMBER.sub("#", text), [float(number) for number in _NUMBER.findall(text)]


if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    with FreshProcesses() as server:
        for example in EXAMPLES:
            (RECORDED / f"{example.stem}.txt").write_text(run(example, server), encoding="utf-8")
            print(f"docs/recorded/{example.stem}.txt")
