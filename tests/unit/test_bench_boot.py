"""`bench boot` measures what it says, and notices a sum that is wrong. The real start is measured by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.faults.test_nothing_is_left import EMPTY_TENSORFLOW
from tests.fresh_process import ROOT

# Without TensorFlow's seconds; the processes, their TF_CONFIG and the clock are the real ones.
BOOT = """
from tfdistedu.bench import boot
boot.FIRST_REDUCTION = '''
import json, os, time

def first_reduction():
    time.sleep(0.2)
    return len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]) + {more}
'''
from tfdistedu.cli import main
main(["bench", "boot", "--tasks", "{tasks}", "--json", "-"])
"""


@pytest.fixture
def boot(tmp_path):
    for name, text in EMPTY_TENSORFLOW.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}

    def call(tasks, more):
        code = BOOT.format(tasks=tasks, more=more)
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)

    return call


def test_the_three_starts_are_timed_until_all_have_the_sum(boot):
    done = boot(3, 0)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert list(seen) == ["tasks", "cold_seconds", "warm_seconds", "plain_seconds"]
    assert seen["tasks"] == 3
    assert all(seen[f"{way}_seconds"] > 0.2 for way in ("cold", "warm", "plain"))


def test_a_wrong_sum_is_an_error(boot):
    done = boot(2, 1)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the sum of 2 ones came out as [3.0, 3.0]" in done.stderr
    assert boot(1, 0).returncode == 2
