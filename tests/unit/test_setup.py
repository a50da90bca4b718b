"""The set-up holds together: what is pinned, built, promised and run are the same thing said in several files."""

from __future__ import annotations

import getpass
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tfdistedu
from tests.fresh_process import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in found.items()}


def requirements() -> list[Requirement]:
    extras = PROJECT["project"]["optional-dependencies"]
    lines = [*PROJECT["project"]["dependencies"], *(line for extra in extras.values() for line in extra)]
    return [Requirement(line) for line in lines]


def test_the_constraints_are_pins_alone_and_name_no_index():
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line
        assert "://" not in line, line


def test_every_dependency_is_pinned_to_a_version_that_it_allows():
    assert len(requirements()) >= 15
    for requirement in requirements():
        version = pins().get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} is not in constraints.txt"
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement} against the pin {version}"


def test_what_is_imported_is_a_dependency():
    """TensorFlow brings much along; what we import ourselves is named, so that it stays when TensorFlow drops it."""
    named = {canonicalize_name(Requirement(line).name) for line in PROJECT["project"]["dependencies"]}
    assert {"tensorflow", "keras", "tf-keras", "numpy", "scikit-learn", "typer", "rich", "cloudpickle"} <= named
    assert {"matplotlib", "pytest"} <= named
    assert not named & {"torch", "mkdocs", "hypothesis"}, "peers, the site and the tests' tools are not for users"


def test_the_version_is_the_same_everywhere():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.+?)\] - (\d{4}-\d\d-\d\d|unreleased)$", changelog, flags=re.M)
    assert newest, "the changelog's first entry is `## [VERSION] - DATE`"
    assert PROJECT["project"]["version"] == tfdistedu.__version__ == newest[1]


def test_the_command_is_installed_by_name():
    assert PROJECT["project"]["scripts"] == {"tfdistedu": "tfdistedu.cli:main"}
    assert PROJECT["project"]["requires-python"] == ">=3.11,<3.14"


def test_the_licence_is_apache_2():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert re.match(r"\s+Apache License\s+Version 2\.0, January 2004", text)
    assert "END OF TERMS AND CONDITIONS" in text, "the whole text"
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert PROJECT["project"]["license-files"] == ["LICENSE"]


def test_make_has_every_target_that_its_help_and_the_readme_name():
    targets = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, flags=re.M))
    assert {"venv", "demo", "test", "lint", "docs", "wheel", "traps-latest", "matrix", "clean"} <= targets
    phony = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.M)[1].split())
    assert targets <= phony, "a folder named like a target, such as docs/, would stop it from running"


def test_make_installs_once():
    """A target that installed each time would pass every other test: so ask make what it would do."""
    stamp = "pretend.installed"
    arguments = ["make", "--dry-run", "demo", f"READY={stamp}"]
    first = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout
    again = [*arguments, "--old-file", stamp]
    second = subprocess.run(again, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout
    assert "pip install" in first
    assert "--constraint constraints.txt" in first
    assert "install" not in second
    assert "tfdistedu demo" in second


def test_ci_runs_tests_lint_and_docs_in_this_order_and_stops_at_the_first_fault():
    script = ROOT / ".ci" / "run"
    text = script.read_text(encoding="utf-8")
    assert script.stat().st_mode & 0o111, "it must be executable"
    assert "set -euo pipefail" in text
    assert re.findall(r"^make ([a-z]+)$", text, flags=re.M)[:3] == ["test", "lint", "docs"]


def test_the_readme_begins_with_the_two_commands():
    """Its first lines are what a newcomer types; the price of the first install stands right below."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert [line.split("#")[0].strip() for line in lines[1:3]] == ["make demo", "make test"]
    beginning = " ".join(lines[:25])
    for words in ("0.7 GB", "2.5 GB", "minute", "python -m venv .venv", "-m pip install -c constraints.txt -e"):
        assert words in beginning, words
    for words in ("-m tfdistedu demo", "-m pytest", r".venv\Scripts\python"):
        assert words in beginning, words


def test_a_wheel_would_hold_every_module():
    """Setuptools takes folders that have an `__init__.py` and match `include`; a folder without one is left out.

    Building the wheel needs setuptools from an index; so the rule is checked here, and the wheel by hand.
    """
    assert PROJECT["tool"]["setuptools"]["packages"]["find"] == {"include": ["tfdistedu*"]}
    for path in sorted((ROOT / "tfdistedu").rglob("*")):
        if "__pycache__" in path.parts or path.is_dir():
            continue
        if path.suffix == ".py":
            folders = [folder for folder in path.parents if folder.is_relative_to(ROOT / "tfdistedu")]
            assert all((folder / "__init__.py").is_file() for folder in folders), path
        else:
            data = PROJECT["tool"]["setuptools"].get("package-data", {})
            assert any(path.match(pattern) for patterns in data.values() for pattern in patterns), (
                f"{path} is no module: name it in [tool.setuptools.package-data], or it is missing from the wheel"
            )


def tracked_files() -> list[Path]:
    """Return the files under version control; all but made ones where there is no git (an unpacked archive)."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, timeout=30)
    if listed.returncode == 0 and listed.stdout:
        return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    made = {".venv", ".venv-latest", "site", "build", "dist", "__pycache__", ".pytest_cache", ".ruff_cache", ".git"}
    return [p for p in ROOT.rglob("*") if p.is_file() and not made & set(p.relative_to(ROOT).parts)]


# Put together here, so that this file does not hold what it looks for.
REGISTRIES = ["py" + "pi.org", "pythonhosted" + ".org", "conda" + ".anaconda", "index" + "-url", "trusted" + "-host"]


def test_no_file_names_a_registry_or_a_path_of_this_machine():
    paths = {str(ROOT), str(Path.home()), f"/home/{getpass.getuser()}"} - {"/"}
    files = tracked_files()
    assert len(files) > 40
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        found = [name for name in REGISTRIES if name in text]
        found += [name for name in paths if re.search(re.escape(name) + r"(?![\w-])", text)]
        assert found == [], path.relative_to(ROOT)


@pytest.mark.parametrize(
    "name", [".venv/", "/site/", "/build/", "/dist/", "*.egg-info/", "__pycache__/", "lessons/*/exercise.py"]
)
def test_what_is_made_is_not_tracked(name):
    assert name in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_no_source_is_ignored():
    """A pattern without a leading slash holds in every folder: `site/` once left out tests/site."""
    words = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "-z", "tfdistedu", "tests", "docs"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=30)
    ignored = [name for name in listed.stdout.split("\0") if name and "__pycache__" not in name]
    assert ignored == []
