"""A scripted learner: a folder of lessons of their own, a bare environment, and commands in processes of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fresh_process import ROOT

# What a simple terminal gives: no colour, 40 columns, no locale.
BARE = {"NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C", "COLUMNS": "40"}


class Learner:
    """Somebody with a copy of the lessons in a folder whose path has a space and an umlaut."""

    def __init__(self, home: Path, lessons: Path = ROOT / "lessons") -> None:
        self.home = home / "mein Übungsordner"
        self.root = self.home / "lessons"
        self.home.mkdir(parents=True)
        shutil.copytree(lessons, self.root, ignore=shutil.ignore_patterns("exercise*", ".progress*", "__pycache__"))
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        self.environment = {**kept, **BARE, "HOME": str(self.home), "PYTHONPATH": str(ROOT)}

    def run(self, *words: str, cwd: Path | None = None, timeout: float = 120.0) -> subprocess.CompletedProcess:
        """Run a Python module with arguments; the output is text."""
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=cwd or self.home,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )

    def learn(self, *words: str, **more) -> subprocess.CompletedProcess:
        """Run `tfdistedu learn`."""
        return self.run("tfdistedu", "learn", *words, **more)

    def warm(self, fresh_processes, module: str, *words: str):
        """Run a module with arguments in a process that has TensorFlow imported already; it saves four seconds."""
        code = f"import runpy\nrunpy.run_module({module!r}, run_name='__main__', alter_sys=True)\n"
        return fresh_processes.run(code, words, self.home, {**BARE, "HOME": str(self.home)})

    def keep(self, *slugs: str) -> None:
        """Take a course with these lessons only, so that 100 % is within reach."""
        for folder in self.root.glob("[0-9]*_*"):
            if folder.name.split("_", 1)[1] not in slugs:
                shutil.rmtree(folder)

    def folder(self, slug: str) -> Path:
        """Return a lesson's folder."""
        return next(self.root.glob(f"*_{slug}"))

    def write(self, slug: str, *sources: str) -> None:
        """Write `exercise.py`: the stub, and after it what was thought of; a later function replaces an earlier one."""
        parts = [(self.folder(slug) / "stub.py").read_text(encoding="utf-8"), *sources]
        text = "\n\n".join(part.replace("from __future__ import annotations\n", "") for part in parts)
        (self.folder(slug) / "exercise.py").write_text(text, encoding="utf-8")

    def read(self, slug: str, file: str) -> str:
        """Return the text of a lesson's file."""
        return (self.folder(slug) / file).read_text(encoding="utf-8")


def too_wide(text: str, columns: int = 40) -> list[str]:
    """Return the lines that are wider than the terminal; one with a word that leaves no room beside it may be."""
    return [line for line in text.splitlines() if len(line) > columns and max(map(len, line.split())) <= columns - 12]
