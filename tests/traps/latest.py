"""Run the trap tests on the newest tensorflow and keras, in `.venv-latest`: what `make traps-latest` does.

If the newest versions are those of this environment, there is nothing to learn, and nothing is installed (`--force`
does it all the same). Everything ends within ten minutes. Status 0: it ran, or there was no need; 1: it could not run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

from tests.traps.report_changes import ROOT, installed

DEADLINE = 600.0  # seconds for everything
WATCHED = ("tensorflow", "keras", "tf-keras")
ALSO = ("pytest", "pytest-timeout", "hypothesis", "scikit-learn")  # what the tests and tests/conftest.py import
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--timeout", "10", "--retries", "1")
# Their path is all that this project needs there: installed, it would ask for its own pinned tensorflow.
FOLDER = ROOT / ".venv-latest"


class CannotRun(Exception):
    """Why the tests could not be run, in words."""


def newest(name: str, deadline: float) -> str:
    """Ask the package index for the newest version that fits this Python."""
    done = run([sys.executable, *PIP, "index", "versions", name], deadline, capture_output=True, text=True)
    found = re.search(rf"^{re.escape(name)} \(([^)]+)\)", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise CannotRun(f"pip cannot ask for the versions of {name}: {last_line(done.stderr)}")
    return found[1]


def last_line(text: str) -> str:
    """Return the last line that says something."""
    return ([line for line in text.splitlines() if line.strip()] or ["it said nothing"])[-1]


def run(command: list, deadline: float, **settings: object) -> subprocess.CompletedProcess:
    """Run a command within the time that is left."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise CannotRun(f"{DEADLINE:.0f} s were not enough; nothing was left for {command[1:4]}")
    try:
        return subprocess.run(command, cwd=ROOT, timeout=left, check=False, **settings)
    except subprocess.TimeoutExpired:
        raise CannotRun(
            f"{' '.join(map(str, command[1:5]))} ... did not end; {DEADLINE:.0f} s were not enough"
        ) from None


def traps_on_newest(force: bool) -> None:
    """Compare versions; install and run if need be."""
    deadline = time.monotonic() + DEADLINE
    new, here = ({name: of(name) for name in WATCHED} for of in (lambda name: newest(name, deadline), installed))
    if new == here and not force:
        versions = ", ".join(f"{name} {number}" for name, number in new.items())
        print(f"The newest versions are those of this environment ({versions}): nothing can have changed.")
        return
    print(f"Newest: {new}. Here: {here}. Installing the newest into {FOLDER.name} ...", flush=True)
    python = FOLDER / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    for what, command in {
        "making the environment": [sys.executable, "-m", "venv", FOLDER],
        "installing": [python, *PIP, "install", "--quiet", "--upgrade", *WATCHED, *ALSO],
        "running the tests": [python, "-m", "tests.traps.report_changes"],
    }.items():
        status = run(command, deadline).returncode
        if status:
            raise CannotRun(f"{what} ended with status {status}")


def main(arguments: list[str]) -> int:
    """Run, and say why not if not."""
    try:
        traps_on_newest(force="--force" in arguments)
    except CannotRun as why:
        print(f"traps-latest could not run: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
