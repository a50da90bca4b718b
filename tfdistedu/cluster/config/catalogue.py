"""Which findings are there, and what does each look like?

Every kind has an example that shows it and the same text mended. Tests hold both against `parse`: the example gives
the code, the mended text gives no error. The page of the site and `tfdistedu explain CODE` are made from this list.

Left out: the messages, which name what stands in *your* text; the checks write them.
"""

from __future__ import annotations

from tfdistedu.cluster.config.catalogue_cluster import CLUSTER_KINDS, GOOD, text
from tfdistedu.cluster.config.findings import Kind

_A, _B = '["a:2222", "b:2222"]', '{"type": "worker", "index": 0}'

TEXT_KINDS = (
    Kind(
        "json-empty",
        "error",
        "The variable is set and empty",
        "TensorFlow reads an empty text and fails with a bare JSONDecodeError. An unset variable is a single process.",
        "",
        GOOD,
    ),
    Kind(
        "json-single-quotes",
        "error",
        "A Python dictionary, not JSON",
        "`str(config)` and hand-written dictionaries have single quotes, None, True and tuples; JSON has none of them.",
        GOOD.replace('"', "'"),
        GOOD,
    ),
    Kind(
        "json-unquoted",
        "error",
        "The shell took the double quotes away",
        'In `export TF_CONFIG={"cluster": ...}` the shell eats them. Single quotes around the whole protect them.',
        GOOD.replace('"', ""),
        GOOD,
    ),
    Kind(
        "json-wrapped-in-quotes",
        "error",
        "Quotes or backslashes too many",
        "An `.env` file, Docker or a second `json.dumps` keeps the outer quotes as part of the value.",
        f"'{GOOD}'",
        GOOD,
    ),
    Kind(
        "json-curly-quotes",
        "error",
        "Curly quotes",
        "A word processor, a chat or a web page has turned straight quotes into curly ones.",
        GOOD.replace('"', "“"),
        GOOD,
    ),
    Kind(
        "json-trailing-comma",
        "error",
        "A comma before a closing bracket",
        "Python allows it, JSON does not.",
        GOOD.replace('"b:2222"]', '"b:2222",]'),
        GOOD,
    ),
    Kind(
        "json-bom",
        "error",
        "A byte order mark at the beginning",
        "Some editors and PowerShell's `>` put an invisible character first, and Python's JSON reader refuses it.",
        "\ufeff" + GOOD,
        GOOD,
    ),
    Kind(
        "json-is-a-name",
        "error",
        "A file's name instead of its text",
        "TF_CONFIG holds the JSON itself; TensorFlow opens no file.",
        "/etc/tf_config.json",
        GOOD,
    ),
    Kind(
        "json-not-expanded",
        "error",
        "A variable that was not replaced",
        "Single quotes, systemd and Docker hand `$NAME` on as it is.",
        "${CLUSTER_CONFIG}",
        GOOD,
    ),
    Kind(
        "json-cut-short",
        "error",
        "The text ends too early",
        "A bracket or a quote is not closed, or the text lost its end.",
        GOOD[:-1],
        GOOD,
    ),
    Kind(
        "json-broken",
        "error",
        "Not JSON, for another reason",
        "The message names line and column, and shows what stands there.",
        GOOD.replace('"task":', '"task"='),
        GOOD,
    ),
    Kind(
        "json-not-an-object",
        "error",
        "JSON, but no object",
        "TF_CONFIG is an object with the keys cluster and task; a list of addresses alone does not say who is who.",
        _A,
        GOOD,
    ),
    Kind(
        "json-not-finite",
        "error",
        "NaN or Infinity",
        "Python's JSON reader takes them, JSON has no such numbers, and the text could not be written again.",
        text(f'"worker": {_A}').replace('"index": 0', '"index": 0, "trial": NaN'),
        GOOD,
    ),
    Kind(
        "json-duplicate-key",
        "warning",
        "A key twice in one object",
        "JSON readers keep the last: the first list of workers is lost without a word.",
        text('"worker": ["c:2222"], "worker": ["a:2222", "b:2222"]'),
        GOOD,
    ),
    Kind(
        "too-large",
        "warning",
        "Longer than a variable may be",
        "Linux starts no program with a variable of more than 128 KiB (`Argument list too long`).",
        GOOD + " " * 131072,
        GOOD,
    ),
    Kind(
        "key-misspelt",
        "error",
        "A key that TensorFlow does not see",
        "`Cluster`, `tasks` or jobs on the top level are passed over: every worker trains alone, without an error.",
        f'{{"Cluster": {{"worker": {_A}}}, "task": {_B}}}',
        GOOD,
    ),
    Kind(
        "key-unknown",
        "warning",
        "A key that nobody reads",
        "It does no harm, and no good.",
        GOOD[:-1] + ', "comment": "two workers"}',
        GOOD,
    ),
    Kind(
        "rpc-layer",
        "error",
        "Another protocol than grpc",
        "TensorFlow as one can install it speaks gRPC only.",
        GOOD[:-1] + ', "rpc_layer": "http"}',
        GOOD[:-1] + ', "rpc_layer": "grpc"}',
    ),
)

TASK_KINDS = (
    Kind(
        "task-missing",
        "depends",
        "It does not say which task this is",
        "An error for MultiWorkerMirroredStrategy; a coordinator of parameter servers may do without.",
        f'{{"cluster": {{"worker": {_A}}}}}',
        GOOD,
    ),
    Kind(
        "task-not-an-object",
        "error",
        "The task is no object",
        'It has two parts: `{"type": "worker", "index": 0}`.',
        GOOD.replace(_B, '"worker:0"'),
        GOOD,
    ),
    Kind(
        "task-type-missing",
        "error",
        "The task has no type",
        "TensorFlow asks for both type and index.",
        text(f'"worker": {_A}', '"index": 0'),
        GOOD,
    ),
    Kind(
        "task-type-unknown",
        "error",
        "A type that is no job",
        "The four jobs are chief, worker, ps and evaluator, in small letters and without an s.",
        text(f'"worker": {_A}', '"type": "Worker", "index": 0'),
        GOOD,
    ),
    Kind(
        "task-type-not-in-cluster",
        "error",
        "A job that the cluster does not list",
        "The task must be one of the cluster's. (An evaluator is right without: it is no member of the cluster.)",
        text(f'"worker": {_A}', '"type": "chief", "index": 0'),
        GOOD,
    ),
    Kind(
        "task-index-missing",
        "error",
        "The task has no index",
        "All processes of the job would be the same task.",
        text(f'"worker": {_A}', '"type": "worker"'),
        GOOD,
    ),
    Kind(
        "task-index-wrong",
        "error",
        "The index is no whole number",
        "TensorFlow makes 1 of 1.9 and of true, so two processes become the same task.",
        text(f'"worker": {_A}', '"type": "worker", "index": 0.5'),
        GOOD,
    ),
    Kind(
        "task-index-is-text",
        "warning",
        "The index is a text",
        "TensorFlow makes a number of it; programs that compare it with 0 to find the chief do not.",
        text(f'"worker": {_A}', '"type": "worker", "index": "0"'),
        GOOD,
    ),
    Kind(
        "task-index-negative",
        "error",
        "The index is below 0",
        "TensorFlow tests the upper bound alone: -1 passes, and fails or hangs later.",
        text(f'"worker": {_A}', '"type": "worker", "index": -1'),
        GOOD,
    ),
    Kind(
        "task-index-not-in-job",
        "error",
        "There is no such index in the job",
        "Indices count from 0: two workers are 0 and 1.",
        text(f'"worker": {_A}', '"type": "worker", "index": 2'),
        GOOD,
    ),
    Kind(
        "task-index-counts-the-chief",
        "error",
        "Workers numbered from 1 because of a chief",
        "Each job counts for itself: with a chief, too, the workers start at 0.",
        text(f'"chief": ["c:2222"], "worker": {_A}', '"type": "worker", "index": 2'),
        text(f'"chief": ["c:2222"], "worker": {_A}', '"type": "worker", "index": 1'),
    ),
)

KINDS: dict[str, Kind] = {kind.code: kind for kind in (*TEXT_KINDS, *CLUSTER_KINDS, *TASK_KINDS)}
