"""The tool that other tests stand on: a fresh process must be fresh, must end, and must tell how."""

from __future__ import annotations

import pytest


def test_each_process_chooses_its_own_virtual_cpus(fresh_processes):
    for n in (1, 3):
        code = f"from tfdistedu.devices import mirrored_strategy\nprint(mirrored_strategy({n}).num_replicas_in_sync)"
        finished = fresh_processes.run(code)
        assert (finished.status, finished.stdout) == (0, f"{n}\n"), finished.stderr


def test_status_and_output_of_a_failing_process_arrive(fresh_processes):
    finished = fresh_processes.run("import sys\nprint('out')\nsys.exit('no')\n")
    assert (finished.status, finished.stdout, finished.stderr) == (1, "out\n", "no\n")


def test_a_blocked_module_cannot_be_imported_though_the_server_holds_it(fresh_processes):
    finished = fresh_processes.run("import tensorflow\nimport tfdistedu\n", block=("tfdistedu",))
    assert finished.status == 1
    assert "No module named 'tfdistedu'" in finished.stderr


def test_a_process_that_does_not_end_is_ended(fresh_processes):
    with pytest.raises(TimeoutError, match="did not end within 1"):
        fresh_processes.run("import time\ntime.sleep(60)\n", timeout=1)
