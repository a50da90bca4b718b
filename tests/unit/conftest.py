"""A plain new Python, for what must hold without anything imported before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.fresh_process import ROOT


@pytest.fixture
def fresh_python() -> Callable[..., subprocess.CompletedProcess]:
    """Run `python ARGUMENTS` in the root of the project and return how it ended, with what it wrote."""

    def run(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
