"""The wheel carries the lessons, and nobody's own work: what `learn init` needs where there is no clone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.fresh_process import ROOT
from tfdistedu.course.lesson import all_lessons


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """What the wheel installs, from a copy of the sources in which a learner has worked."""
    base = tmp_path_factory.mktemp("wheel")
    source = base / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    # Setuptools knows this key since version 77; nothing is downloaded here, and an older one builds the same files.
    project = (source / "pyproject.toml").read_text(encoding="utf-8")
    (source / "pyproject.toml").write_text(re.sub(r"(?m)^license.*\n", "", project), encoding="utf-8")
    ignored = shutil.ignore_patterns("__pycache__", "exercise*", ".progress*", "*.egg-info")
    for name in ("tfdistedu", "lessons"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    (source / "lessons" / "07_allreduce" / "exercise.py").write_text("raise SystemExit\n", encoding="utf-8")
    (source / "lessons" / ".progress.json").write_text("{}", encoding="utf-8")
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", base, source],
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = base.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(base / "site")
    return base / "site"


def test_it_holds_every_lesson_and_no_learners_file(unpacked):
    carried = {
        str(path.relative_to(unpacked / "tfdistedu" / "_lessons"))
        for path in (unpacked / "tfdistedu" / "_lessons").rglob("*")
        if path.is_file()
    }
    tracked = subprocess.run(["git", "ls-files", "lessons"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert carried == {line.removeprefix("lessons/") for line in tracked.stdout.splitlines()}


def test_init_from_it_and_every_exercise_says_not_started(unpacked, tmp_path):
    # Only what was installed is importable from there, and the folder is empty.
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "NO_COLOR": "1", "COLUMNS": "80"}

    def run(*words, cwd):
        return subprocess.run(
            [sys.executable, "-P", "-m", *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
        )

    where = run("tfdistedu", "learn", "init", "c", cwd=tmp_path)
    assert where.returncode == 0, where.stderr
    course = tmp_path / "c"
    # One lesson is run here; test_gate looks at the stubs of all, and these are the same files.
    done = run("pytest", "lessons/07_allreduce", cwd=course)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "testing lessons/07_allreduce/exercise.py"
    assert done.stdout.count(": not started") == 3
    listed = json.loads(run("tfdistedu", "learn", "list", "--json", "-", cwd=course).stdout)
    carried = [lesson.slug for lesson in all_lessons(ROOT / "lessons")]
    assert [lesson["slug"] for lesson in listed["lessons"]] == carried
    mine = course / "lessons" / "07_allreduce" / "exercise.py"
    mine.write_text("# mine\r\n", encoding="utf-8", newline="")
    for _ in range(2):
        assert run("tfdistedu", "learn", "update", cwd=course).returncode == 0
        assert mine.read_bytes() == b"# mine\r\n"
