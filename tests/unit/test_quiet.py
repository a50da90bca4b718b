"""TensorFlow's start-up lines are held back, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.fresh_process import ROOT
from tfdistedu.quiet import _held_stderr


def test_importing_writes_nothing_and_leaves_it_asleep_and_a_warning_after_it_is_seen():
    """In a process of its own: here TensorFlow is imported already."""
    code = (
        "import os, warnings\n"
        "from tfdistedu.quiet import import_tensorflow, is_awake\n"
        "tf = import_tensorflow()\n"
        "print(is_awake(), import_tensorflow() is tf)\n"
        "os.write(2, b'seen\\n')\n"
        "warnings.warn('mind this')\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"} | {"PYTHONPATH": str(ROOT)}
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    assert finished.stdout == "False True\n"
    assert finished.stderr.splitlines()[0] == "seen"
    assert "mind this" in finished.stderr
    assert len(finished.stderr.splitlines()) <= 3


def test_what_was_held_comes_out_when_the_import_fails(capfd):
    def noisy_failure():
        with _held_stderr():
            os.write(2, b"libfoo.so is missing\n")
            raise ImportError("no")

    with pytest.raises(ImportError):
        noisy_failure()
    assert capfd.readouterr().err == "libfoo.so is missing\n"


def test_what_was_held_is_gone_when_it_works_and_what_follows_is_not(capfd):
    with _held_stderr():
        os.write(2, b"noise\n")
        print("noise too", file=sys.stderr, flush=True)
    os.write(2, b"after\n")
    held = capfd.readouterr().err
    assert held.endswith("after\n")
    assert not held.startswith("noise\n")


def test_a_process_without_a_descriptor_for_errors_can_import_too(fresh_processes):
    code = "import os\nos.close(2)\nfrom tfdistedu.quiet import _held_stderr\nwith _held_stderr():\n    print('ran')\n"
    assert fresh_processes.run(code).stdout == "ran\n"


def test_being_awake_is_told_before_and_after(fresh_processes):
    code = """
from tfdistedu.quiet import import_tensorflow, is_awake, who_woke_tensorflow
tf = import_tensorflow()
tf.config.list_physical_devices()
print(is_awake())
def wake():
    return tf.zeros(1)
wake()
print(is_awake(), who_woke_tensorflow().split("/")[-1])
"""
    assert fresh_processes.run(code).stdout.splitlines() == ["False", "True script.py:7 in wake: return tf.zeros(1)"]


def test_the_levels_that_someone_set_are_kept(fresh_processes):
    code = "import os\nfrom tfdistedu.quiet import import_tensorflow\nimport_tensorflow()\n"
    code += "print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    assert fresh_processes.run(code, environment={"TF_CPP_MIN_LOG_LEVEL": "0"}).stdout == "0\n"


def test_another_backend_of_keras_is_refused_with_the_remedy_and_one_in_its_settings_is_overruled(tmp_path):
    """The import itself ends with "No module named 'jax'" from deep inside of Keras."""
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    environment = {key: value for key, value in os.environ.items() if key != "KERAS_BACKEND"}
    environment |= {"PYTHONPATH": str(ROOT), "KERAS_HOME": str(tmp_path)}
    lines = "from tfdistedu.quiet import import_tensorflow", "import_tensorflow()", "import keras"
    code = "\n".join([*lines, "print(keras.backend.backend())"])

    def run(**more):
        words = [sys.executable, "-c", code]
        return subprocess.run(words, env={**environment, **more}, capture_output=True, text=True, timeout=60)

    refused = run(KERAS_BACKEND="jax")
    assert "MachineCannot: Keras computes with jax here" in refused.stderr
    assert "KERAS_BACKEND to tensorflow" in refused.stderr
    overruled = run()
    assert overruled.stdout == "tensorflow\n", overruled.stderr
