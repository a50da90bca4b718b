"""TF_CONFIG, checked: each kind of finding has an example that shows it, and each text of a finding is held here."""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.unit.finding_texts import CASES
from tfdistedu.cluster import config as package
from tfdistedu.cluster.config import ClusterConfig, Task, build, parse
from tfdistedu.cluster.config.addresses import split
from tfdistedu.cluster.config.catalogue import KINDS
from tfdistedu.cluster.config.catalogue_cluster import GOOD, text
from tfdistedu.cluster.config.findings import meant
from tfdistedu.errors import BadInput

WORKERS = '"worker": ["a:2222", "b:2222"]'


def said(given: str, strategy: str | None = None) -> list[str]:
    return [
        f"{'error' if f.is_error else 'warning'} {f.code} | {f.where} | {f.message} | {f.remedy}"
        for f in parse(given, strategy).findings
    ]


@pytest.mark.parametrize(("given", "strategy", "expected"), CASES, ids=range(len(CASES)))
def test_the_findings_say_word_for_word_what_is_written_down(given, strategy, expected):
    assert said(given, strategy) == expected


def words_of(path: Path) -> list[str]:
    """Return the pieces of text in a module that a message may hold: no docstrings, no code, no names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = [ast.get_docstring(node, clean=False) for node in ast.walk(tree) if hasattr(node, "body")
                 and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]  # fmt: skip
    pieces = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [piece for piece in pieces if piece not in documents and piece.count(" ") >= 2]


def test_no_piece_of_a_text_is_without_a_case():
    """Cases that were collected by hand would miss the branch that nobody thought of; so the sources are asked."""
    folder = Path(package.__file__).parent
    everything = "\n".join(line for _, _, lines in CASES for line in lines)
    everything += " ".join(said(GOOD + " " * 140_000))  # as long as this, it is not written down
    missing = []
    for name in ("reading", "checks", "addresses", "task", "roles"):
        for piece in words_of(folder / f"{name}.py"):
            if piece not in everything and not piece.startswith(("parse(", " parse(", "]. For a", ". For a dict")):
                missing.append((name, piece))
    assert missing == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_example_of_a_kind_shows_it_and_the_mended_one_does_not(kind):
    wrong, right = parse(kind.example, kind.strategy), parse(kind.mended, kind.strategy)
    (finding, *_) = [finding for finding in wrong.findings if finding.code == kind.code]
    assert kind.severity in ("depends", "error" if finding.is_error else "warning")
    assert (wrong.config is None) == bool(wrong.errors)
    assert right.errors == ()
    assert kind.code not in right.codes
    assert right.config is not None


def test_every_code_that_a_check_gives_is_in_the_catalogue_and_the_other_way_round():
    given = {line.split()[1] for _, _, lines in CASES for line in lines} | {"too-large"}
    assert given == set(KINDS)


@pytest.mark.parametrize(
    ("code", "strategy", "is_error", "given"),
    [
        ("evaluator-in-cluster", None, False, text(f'{WORKERS}, "evaluator": ["e:1"]')),
        ("evaluator-in-cluster", None, True, text(f'{WORKERS}, "ps": ["p:1"], "evaluator": ["e:1"]')),
        ("task-missing", None, True, f'{{"cluster": {{{WORKERS}}}}}'),
        ("task-missing", "parameter_server", False, f'{{"cluster": {{{WORKERS}, "ps": ["p:1"]}}}}'),
        ("job-empty", None, False, text(f'{WORKERS}, "ps": []')),
        ("job-empty", None, True, text('"worker": [], "ps": {}')),
        ("job-has-gaps", None, False, text('"worker": {"1": "b:1"}', '"type": "worker", "index": 1')),
        ("job-has-gaps", "multi_worker", True, text('"worker": {"1": "b:1"}', '"type": "worker", "index": 1')),
    ],
)
def test_a_kind_that_depends_on_the_strategy_is_an_error_only_where_it_cannot_work(code, strategy, is_error, given):
    assert KINDS[code].severity == "depends"
    assert {f.is_error for f in parse(given, strategy).findings if f.code == code} == {is_error}


@pytest.mark.parametrize(
    "cluster",
    [
        '"worker": {"0": "a:2222", "1": "b:2222"}',  # objects are legal since 2021
        '"worker": ["worker-0.training.svc.cluster.local:2222", "WORKER-1.:2222"]',
        '"worker": ["[::1]:2222", "localhost:2223"]',
        '"worker": ["[fd00::7]:2222", "[fe80::1%eth0]:2222"]',
        '"worker": ["10.0.0.7:65535", "10.0.0.8:1"]',
        '"worker": ["a:2222", "a:2223"], "chief": ["a:2224"]',
    ],
)
def test_what_can_work_is_not_complained_of(cluster):
    assert parse(text(cluster)).findings == ()


def test_an_evaluator_outside_the_cluster_is_right():
    config = parse(text(f'"chief": ["c:1"], {WORKERS}, "ps": ["p:1"]', '"type": "evaluator", "index": 0')).config
    assert (config.name, config.address, len(config.others)) == ("evaluator:0", None, 4)


@pytest.mark.parametrize("index", ["0", '"0"', '"00"'])
def test_an_index_is_a_whole_number_or_its_digits(index):
    assert parse(text(WORKERS, f'"type": "worker", "index": {index}')).config.me == ("worker", 0)


@pytest.mark.parametrize(
    "index", ["0.0", "true", "null", '" 0"', '"0 "', '"+0"', '"0_0"', '"０"', '"٠"', '""', "[0]", "1e400"]
)
def test_an_index_is_nothing_else(index):
    """`int` takes most of these, and two processes would become the same task."""
    assert parse(text(WORKERS, f'"type": "worker", "index": {index}')).config is None


@pytest.mark.parametrize(
    ("word", "job"),
    [("Worker", "worker"), ("WORKERS", "worker"), ("worker_hosts", "worker"), ("ps_hosts", "ps"),
     ("parameter_servers", "ps"),
     ("master", "chief"), ("cheif", "chief"), ("evaluater", "evaluator"), ("eval", "evaluator"), ("x" * 10_000, None),
     ("", None)],
)  # fmt: skip
def test_did_you_mean_knows_slips_plurals_and_the_names_of_others(word, job):
    assert meant(word) == job


def test_one_run_shows_all_that_is_wrong():
    given = '{"cluster": {"worker": ["a", "http://b:1"], "chef": ["c:1"]}, "task": {"type": "ps", "index": -1}, "x": 1}'
    codes = ("key-unknown", "address-no-port", "address-scheme", "job-unknown", "task-index-negative")
    assert parse(given).codes == codes


@pytest.mark.parametrize("wrong", [None, {}, b"{}"])
def test_another_type_than_text_is_refused_with_the_remedy(wrong):
    with pytest.raises(BadInput, match=r"parse\(text\): TF_CONFIG is a text, not .* For a dictionary: json\.dumps"):
        parse(wrong)


def test_another_strategy_is_refused_with_a_guess():
    with pytest.raises(BadInput, match=r"there is no 'multiworker'. Did you mean \"multi_worker\""):
        parse(GOOD, "multiworker")


# --- the type ---------------------------------------------------------------------------------------------------------


def test_render_gives_back_what_was_read_and_a_shell_hands_it_on():
    cluster = '"cluster": {"worker": {"1": "b:1", "0": "a:1"}}'
    given = f'{{"task": {{"index": "1", "type": "worker"}}, "rpc_layer": "grpc", {cluster}}}'
    config = parse(given).config
    assert json.loads(config.render()) == {
        "cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc",
    }  # fmt: skip
    assert parse(config.render()).config == config
    assert parse(config.render()).findings == ()
    script = config.shell() + '\nprintf %s "$TF_CONFIG"'
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == config.render()
    assert shlex.split(config.shell())[1] == f"TF_CONFIG={config.render()}"


def test_a_config_is_immutable_and_can_be_a_key():
    config = parse(GOOD).config
    with pytest.raises(AttributeError):
        config.me = ("worker", 1)
    assert {config: 1}[parse(config.render()).config] == 1
    assert config.as_task("worker", 1).address == "b:2222"
    assert [task.name for task in config.others] == ["worker:1"]
    assert config.of("ps") == ()


def test_a_sparse_job_stays_sparse():
    config = ClusterConfig((Task("worker", 2, "b:1"),), ("worker", 2))
    assert config.as_json()["cluster"] == {"worker": {"2": "b:1"}}
    assert parse(config.render()).config == config


def test_build_gives_each_task_its_config_and_none_has_an_error():
    configs = build(workers=2, ps=1, chief=True, evaluator=True, hosts=["c", "a", "b", "p"], ports=2222)
    assert [config.name for config in configs] == ["chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0"]
    assert [config.address for config in configs] == ["c:2222", "a:2222", "b:2222", "p:2222", None]
    assert len({config.tasks for config in configs}) == 1
    assert all(parse(config.render()).findings == () for config in configs)
    assert build(1, hosts="::1", ports=[5])[0].address == "[::1]:5"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"workers": -1}, "workers.*at least 0"),
        ({"workers": 1.5}, "workers.*a whole number"),
        ({"ps": True}, "ps.*a whole number"),
        ({"workers": 0}, "no tasks"),
        ({"workers": 2, "ports": [1]}, "ports.*1 for 2 tasks"),
        ({"workers": 2}, "two processes cannot listen"),
        ({"workers": 0, "ps": 1}, "no worker"),
        ({"workers": 1, "hosts": "http://a"}, "no IPv6 address"),
    ],
)
def test_build_refuses_what_could_not_work(arguments, words):
    with pytest.raises(BadInput, match=words):
        build(**arguments)


@pytest.mark.parametrize(
    ("address", "kind"),
    [("localhost:1", "loopback"), ("127.5.5.5:1", "loopback"), ("[::1]:1", "loopback"), ("x.localhost:1", "loopback"),
     ("[::ffff:127.0.0.1]:1", "loopback"), ("0.0.0.0:1", "wildcard"), ("[::]:1", "wildcard"), ("a:1", "real"),
     ("10.0.0.1:1", "real")],
)  # fmt: skip
def test_where_a_host_is(address, kind):
    assert split(address).kind == kind


# --- against TensorFlow -----------------------------------------------------------------------------------------------

# What TensorFlow's resolver and the strategies' own check let pass, and why it is an error here all the same.
PASSES_AND_CANNOT_WORK = {
    "key-misspelt": "read as no cluster: each worker trains alone",
    "json-wrapped-in-quotes": "read as no cluster: each worker trains alone",
    "json-broken": "fifty levels of brackets, read as no cluster",
    "json-not-an-object": "read as no cluster: each worker trains alone",
    "task-index-not-in-job": "TensorFlow counts the tasks of a sparse job, and does not look whether this one is there",
    "task-index-negative": "the strategy fails or hangs later",
    "task-index-wrong": "int() makes the same task of two processes",
    "job-index-wrong": "int() takes signs, spaces and other scripts' digits, others that read it do not",
    "job-index-twice": "one address is lost",
    "json-not-finite": "is no JSON for any other reader",
    "rpc-layer": "no such server in the package",
    "address-empty": "nobody can dial it",
    "address-has-spaces": "nobody can dial it",
    "address-scheme": "the server refuses it",
    "address-no-port": "the server refuses it",
    "address-port-wrong": "the server refuses it",
    "address-port-zero": "no other task learns the port",
    "address-ipv6-brackets": "the server refuses it",
    "host-wrong": "no resolver finds it",
    "hosts-mixed": "the others look for the task on themselves",
    "address-twice": "one of the two cannot listen",
    "evaluator-in-cluster": "the coordinator waits for ever",
    "worker-missing": "nobody computes",
    "ps-with-multi-worker": "the ps cannot build the strategy, the others wait for it",
    "job-has-gaps": "a strategy numbers tasks without gaps",
    "ps-missing": "the strategy refuses it",
}


def tensorflow_accepts(given: str, strategy: str | None, monkeypatch) -> bool:
    """Ask the resolver for all that a strategy asks it for, and the check that every strategy runs."""
    from tfdistedu.quiet import import_tensorflow

    tf = import_tensorflow()
    from tensorflow.python.distribute import multi_worker_util

    monkeypatch.setenv("TF_CONFIG", given)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    try:
        cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
        _ = resolver.rpc_layer
        if not cluster and strategy != "parameter_server":
            return True  # MultiWorkerMirroredStrategy asks no further, and trains alone
        multi_worker_util._validate_cluster_spec(cluster, job, index)
        servers = strategy == "parameter_server" or (strategy is None and multi_worker_util.task_count(cluster, "ps"))
        if cluster and not servers and (job is None or index is None):
            return False  # MultiWorkerMirroredStrategy: "you must also specify `task_type` and `task_id`"
    except Exception:
        return False
    return True


def all_texts() -> list[tuple[str, str | None]]:
    texts = {(given, strategy) for given, strategy, _ in CASES}
    texts |= {(kind.mended, kind.strategy) for kind in KINDS.values()}
    return sorted(((g, s) for g, s in texts if "\0" not in g), key=str)


def test_what_tensorflow_accepts_is_no_error_here_but_for_what_can_never_work(monkeypatch):
    accepted, used = 0, set()
    for given, strategy in all_texts():
        if tensorflow_accepts(given, strategy, monkeypatch):
            accepted += 1
            codes = {finding.code for finding in parse(given, strategy).errors}
            assert codes <= set(PASSES_AND_CANNOT_WORK), (given, codes)
            used |= codes
    assert accepted > 40
    assert set(PASSES_AND_CANNOT_WORK) - used == set(), "an exception that nobody needs"


def test_what_has_no_error_here_is_accepted_by_tensorflow(monkeypatch):
    """Else a strict-looking check could be stricter than TensorFlow in one place and laxer in another."""
    sound = [(given, strategy) for given, strategy in all_texts() if not parse(given, strategy).errors]
    assert len(sound) > 25
    refused = [given for given, strategy in sound if not tensorflow_accepts(given, strategy, monkeypatch)]
    # A server may be told of some tasks only; the strategies' check counts and refuses that, a server does not run it.
    assert all("job-has-gaps" in parse(given).codes for given in refused), refused


def test_reading_and_checking_wants_no_tensorflow_and_little_time():
    many = {"worker": [f"worker-{i}.example.com:2222" for i in range(3000)]}
    given = json.dumps({"cluster": many, "task": {"type": "worker", "index": 2999}})
    before = os.times().user
    assert parse(given).config.name == "worker:2999"
    # 3,000 tasks take 0.05 s here; anything quadratic takes many seconds.
    assert os.times().user - before < 2.0


def test_what_is_said_of_addresses_is_what_tensorflows_server_does(fresh_processes):
    """IPv6 in brackets works; the port counts for all interfaces, so two loopback addresses cannot share one."""
    code = """
import tensorflow as tf
from tests.unit.test_doctor import free_port
def start(address):
    try:
        tf.distribute.Server({"worker": [address]}, job_name="worker", task_index=0)
        print("started")
    except Exception as error:
        print(str(error).split(" \\"")[0])
port = free_port()
start(f"127.0.0.1:{port}")
start(f"127.0.0.2:{port}")
start(f"[::1]:{free_port()}")
start("localhost")
"""
    finished = fresh_processes.run(code, timeout=60)
    assert finished.stdout.splitlines() == [
        "started",
        "Could not start gRPC server",
        "started",
        "Could not parse port for local server from",
    ], finished.stderr


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (text('"ps_hosts": ["p:1"], "worker_hosts": ["a:1"]'), "job-unknown", 'Did you mean "ps"?'),
        (text(WORKERS, '"type": "chief", "index": 0'), "task-type-not-in-cluster", "no such job"),
        (text(WORKERS, '"type": "worker", "index": 2'), "task-index-not-in-job", "Count from 0"),
        (KINDS["task-index-counts-the-chief"].example, "task-index-counts-the-chief", "start at 0"),
        ("{'cluster': {'worker': ['a:1']}}", "json-single-quotes", '{"cluster": {"worker": ["a:1"]}}'),
        (text('"worker": ["a:1", "a:1"]'), "address-twice", "two processes cannot listen at one port"),
    ],
)  # fmt: skip
def test_what_people_reported_gets_its_code_and_a_remedy(given, code, words):
    first = next(finding for finding in parse(given).errors if finding.code == code)
    assert words in f"{first.message} {first.remedy}"
