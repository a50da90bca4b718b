"""Run the trap tests and say in a few lines what differs from what they expect: `python -m tests.traps.report_changes`.

    mended    a strict xfail passes: upstream gives the right value now; take the mark off
    changed   a test of upstream fails in another way than it should: upstream does something new
    ours      a test of our way fails: this package needs a change before it can move to these versions

The status is 0 whenever the tests ran, whatever they found: this informs, and blocks nothing.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEANING = {
    "mended": "upstream gives the right value now: take the xfail off",
    "changed": "upstream does something new: look, and state it",
    "ours": "our way fails: change it before moving to these versions",
}


class Changes:
    """A pytest plugin that sorts what did not go as expected."""

    def __init__(self):
        self.as_expected = 0
        self.found: list[tuple[str, str, str]] = []  # kind, test, first line of what happened

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sort one report."""
        if not report.failed:
            self.as_expected += report.when == "call"
            return
        told = str(report.longrepr)
        if told.startswith("[XPASS(strict)]"):
            kind, told = "mended", told.removeprefix("[XPASS(strict)]")
        else:
            kind = "changed" if "upstream" in report.keywords else "ours"
            crash = getattr(report.longrepr, "reprcrash", None)
            told = crash.message if crash else told
        self.found.append((kind, report.nodeid, next(iter(told.strip().splitlines()), "")))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self.found.append(("changed", report.nodeid, str(report.longrepr).strip().splitlines()[-1]))


def installed(name: str) -> str:
    """Return the version of a package in this environment."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def report(changes: Changes) -> str:
    """Lay out what was found."""
    names = ("tensorflow", "keras", "tf-keras", "numpy")
    lines = ["Trap tests on " + ", ".join(f"{name} {installed(name)}" for name in names)]
    lines.append(f"{changes.as_expected} as expected, {len(changes.found)} not")
    for kind, meaning in MEANING.items():
        of_kind = [(test, told) for found, test, told in changes.found if found == kind]
        if of_kind:
            lines.append(f"\n{kind} ({len(of_kind)}): {meaning}")
            lines += [f"  {test.removeprefix('tests/traps/')}\n      {told[:150]}" for test, told in of_kind]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run the tests named in the arguments, or all in this folder."""
    changes = Changes()
    quiet = ["-q", "--no-header", "--tb=no", "--disable-warnings", "-p", "no:cacheprovider", "-o", "addopts=-rN"]
    where = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    status = pytest.main([*quiet, *where, *(arguments or [str(ROOT / "tests" / "traps")])], plugins=[changes])
    print(f"\n{report(changes)}", flush=True)
    ran = changes.as_expected + len(changes.found) > 0
    return 0 if ran and status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
