"""`explain`: a code, a log, a line, or the list; the messages themselves are made by TensorFlow in tests/traps."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.fresh_process import ROOT
from tfdistedu.cluster.config.catalogue import KINDS
from tfdistedu.cluster.explain import BY_CODE, explain_code, explain_log
from tfdistedu.cluster.known_messages import MESSAGES
from tfdistedu.cluster.symptoms import SYMPTOMS
from tfdistedu.errors import BadInput

LOG = """starting
W0000 Local rendezvous is aborting: Collective ops is aborted by: Socket closed
INVALID_ARGUMENT: Unable to find the relevant tensor remote_handle: Op ID: 4
UNAVAILABLE: failed to connect to all addresses; last error: ...
"""


@pytest.fixture
def run(fresh_python):
    return lambda *words: fresh_python("-m", "tfdistedu", "explain", *words)


def test_codes_are_unique_over_the_three_catalogues_and_no_text_is_empty():
    assert len(BY_CODE) == len(KINDS) + len(SYMPTOMS) + len(MESSAGES)
    for message in MESSAGES:
        assert message.texts
        for text in (message.code, message.title, message.cause, message.remedy, *message.texts, *message.older):
            assert text == text.strip() != ""
    texts = [text for message in MESSAGES for text in message.texts + message.older]
    assert len(texts) == len(set(texts))


def test_causes_come_in_the_order_of_the_log_and_echoes_last():
    found = explain_log(LOG)
    assert [(one.message.code, one.line, one.count) for one in found] == [
        ("peer-left", 2, 1),
        ("peer-unreachable", 3, 2),
        ("collectives-aborted", 2, 1),
    ]
    assert found[1].text.startswith("INVALID_ARGUMENT")


@pytest.mark.parametrize("message", [m for m in MESSAGES if m.older], ids=lambda m: m.code)
def test_what_other_releases_wrote_is_known_too(message):
    for text in message.older:
        assert [one.message for one in explain_log(f"ValueError: {text}")] == [message]


@pytest.mark.parametrize("text", ["", "all is well\n", "\0\x1b[31m\ud800"])
def test_a_log_without_a_known_message_gives_nothing(text):
    assert explain_log(text) == []


def test_a_very_long_line_is_cut_and_shown_without_escapes():
    (found,) = explain_log("\x1b[31m" + "x" * 5000 + " End of sequence")
    assert len(found.text) == 203
    assert found.text.isprintable()


def test_a_code_may_come_as_the_doctor_prints_it():
    assert explain_code(" [Hosts-Mixed] ").code == "hosts-mixed"
    with pytest.raises(BadInput, match=r"no code and no file 'peer-unreachble'. Did you mean peer-unreachable\?"):
        explain_code("peer-unreachble")
    with pytest.raises(BadInput, match=r"no code and no file 'zzz'. `tfdistedu explain` without a word lists all"):
        explain_code("zzz")


def test_the_command_explains_each_sort_of_code(run):
    kind, symptom, message = run("address-no-port"), run("port-taken"), run("trains-alone")
    assert (kind.returncode, symptom.returncode, message.returncode) == (0, 0, 0)
    assert kind.stdout == (
        "address-no-port: An address without a port\nan error\nTensorFlow has no default port.\n"
        f"wrong: {KINDS['address-no-port'].example}\nright: {KINDS['address-no-port'].mended}\n"
    )
    assert symptom.stdout == (
        "port-taken: This task's port is taken\nan error\nTensorFlow stops with `Could not start gRPC server`.\n"
    )
    assert message.stdout.splitlines()[0] == "trains-alone: MultiWorkerMirroredStrategy without a cluster"
    assert "Set TF_CONFIG before the program starts." in message.stdout
    assert "a warning\n" in run("single-task").stdout
    assert "an error or a warning\n" in run("task-missing").stdout
    assert json.loads(run("single-task", "--json", "-").stdout)["mended"] == KINDS["single-task"].mended


def test_the_command_reads_a_file_and_stdin_and_a_pasted_line(run, tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(LOG.encode() + b"\xff\xfe\n")
    done = run(str(path))
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "peer-left: Another task has ended"
    assert "    line 3, on 2 lines: INVALID_ARGUMENT: Unable to find" in done.stdout
    words = [sys.executable, "-m", "tfdistedu", "explain", "-", "--json", "-"]
    piped = subprocess.run(words, cwd=ROOT, input=LOG, capture_output=True, text=True, timeout=60, check=True)
    data = json.loads(piped.stdout)["found"]
    assert [one["code"] for one in data] == ["peer-left", "peer-unreachable", "collectives-aborted"]
    assert set(data[0]) == {"code", "line", "text", "count", "title", "cause", "remedy"}
    pasted = run("RuntimeError: Collective ops must be configured at program startup")
    assert pasted.stdout.startswith("started-too-late")


def test_a_log_without_a_known_message_is_status_1_and_bad_usage_is_2(run, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("all is well\n", encoding="utf-8")
    done = run(str(path))
    assert (done.returncode, done.stdout) == (1, "No message that is known here.\n")
    for words, message in (
        ("no-such-code", "there is no code and no file"),
        (str(tmp_path), "is a folder; name a log"),
    ):
        done = run(words)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
    assert "Traceback" not in run("x" * 4000).stderr


def test_alone_it_lists_every_code(run):
    lines = run().stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(BY_CODE)
    assert {entry["code"] for entry in json.loads(run("--json", "-").stdout)["codes"]} == set(BY_CODE)
