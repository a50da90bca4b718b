"""`make traps-latest`: it must tell mended from broken, install nothing in vain, and never hang or block."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fresh_process import ROOT
from tests.traps import latest

TRAPS = """
import pytest

@pytest.mark.upstream
@pytest.mark.xfail(strict=True, raises=AssertionError, reason="was wrong")
def test_mended(): pass

@pytest.mark.upstream
@pytest.mark.xfail(strict=True, raises=AssertionError, reason="was wrong")
def test_wrong_in_a_new_way(): raise ValueError("something new")

@pytest.mark.upstream
@pytest.mark.xfail(strict=True, raises=AssertionError, reason="was wrong")
def test_still_wrong(): assert False

def test_our_way(): assert 1 + 1 == 3

def test_our_other_way(): pass
"""


def report_on(folder, code):
    (folder / "test_traps.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "tests.traps.report_changes", str(folder / "test_traps.py")]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_report_sorts_what_changed_and_blocks_nothing(tmp_path):
    done = report_on(tmp_path, TRAPS)
    assert done.returncode == 0, done.stderr
    report = done.stdout[done.stdout.index("Trap tests on tensorflow") :]
    assert "2 as expected, 3 not" in report
    kinds = {kind: report.index(f"\n{kind} (1)") for kind in ("mended", "changed", "ours")}
    assert kinds["mended"] < report.index("::test_mended\n      was wrong") < kinds["changed"]
    assert kinds["changed"] < report.index("::test_wrong_in_a_new_way\n      ValueError: something new") < kinds["ours"]
    assert kinds["ours"] < report.index("::test_our_way\n      assert (1 + 1) == 3")


def test_a_file_that_cannot_be_imported_is_in_the_report(tmp_path):
    done = report_on(tmp_path, "import a_module_that_is_gone\n")
    assert done.returncode == 0, done.stdout
    assert "No module named 'a_module_that_is_gone'" in done.stdout


def test_no_tests_at_all_is_not_a_run(tmp_path):
    assert report_on(tmp_path, "").returncode == 1


@pytest.fixture
def commands(monkeypatch):
    """Catch every command that would be run; answers for `pip index versions` are put into `versions`."""

    class Commands(list):
        """The commands, in order."""

    commands = Commands()
    commands.versions = {name: latest.installed(name) for name in latest.WATCHED}

    def pretend(command, timeout, **settings):
        assert 0 < timeout <= latest.DEADLINE
        commands.append(list(map(str, command)))
        name = commands[-1][-1]
        asked = "index" in commands[-1]
        answer = f"WARNING: noise\n{name} ({commands.versions[name]})\nAvailable versions: ...\n" if asked else ""
        return subprocess.CompletedProcess(command, 0, answer, "")

    monkeypatch.setattr(subprocess, "run", pretend)
    return commands


def test_when_the_newest_are_here_nothing_is_installed(commands, capsys):
    assert latest.main([]) == 0
    assert [command[-1] for command in commands] == list(latest.WATCHED)
    assert "nothing can have changed" in capsys.readouterr().out


def test_when_one_is_newer_the_tests_run_in_an_environment_of_their_own(commands):
    commands.versions = commands.versions | {"keras": "99.0"}
    assert latest.main([]) == 0
    make, install, report = commands[len(latest.WATCHED) :]
    assert make[1:3] == ["-m", "venv"]
    assert install[0] == report[0] == str(latest.FOLDER / "bin" / "python")
    assert set(latest.WATCHED) < set(install)
    assert report[1:] == ["-m", "tests.traps.report_changes"]


def test_without_a_network_it_says_so_and_ends(monkeypatch, capsys):
    def no_network(command, timeout, **settings):
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found for tensorflow\n")

    monkeypatch.setattr(subprocess, "run", no_network)
    assert latest.main([]) == 1
    assert "could not run: pip cannot ask for the versions of tensorflow: ERROR" in capsys.readouterr().err


def test_a_step_that_hangs_is_ended_and_named(monkeypatch, capsys):
    monkeypatch.setattr(latest, "DEADLINE", 0.5)
    monkeypatch.setattr(latest, "PIP", ("-c", "import time; time.sleep(60)"))
    assert latest.main([]) == 1
    assert "did not end" in capsys.readouterr().err
