"""The site, built strictly, once for all tests that look at it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fresh_process import ROOT
from tests.site.html import Page, read_page


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Build the site into a folder of its own, with every warning an error; no TensorFlow is needed for it."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert built.stdout + built.stderr == "", "a quiet strict build says nothing"
    return folder


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[str, Page]:
    """Read every built page once: its path below the site's folder, and what stands in it."""
    return {str(path.relative_to(site)): read_page(path) for path in sorted(site.rglob("*.html"))}
