"""The kinds of findings about jobs, addresses and roles; `catalogue` joins them with the others."""

from __future__ import annotations

from tfdistedu.cluster.config.findings import Kind


def text(cluster: str, task: str = '"type": "worker", "index": 0') -> str:
    """Put a TF_CONFIG together.

    Args:
        cluster: What stands inside the braces of the cluster.
        task: What stands inside the braces of the task.

    Returns:
        The whole.

    """
    return f'{{"cluster": {{{cluster}}}, "task": {{{task}}}}}'


GOOD = text('"worker": ["a:2222", "b:2222"]')
_PS = '"ps": ["p:2222"]'
_ALL = f'"chief": ["c:2222"], "worker": ["a:2222"], {_PS}'


def _second(address: str) -> str:
    """Return two workers, the second with this as its address."""
    return text(f'"worker": ["a:2222", {address}]')


CLUSTER_KINDS = (
    Kind(
        "cluster-missing",
        "warning",
        "No cluster in it",
        "TensorFlow takes that for a single process: every worker trains alone, and no one says so.",
        '{"task": {"type": "worker", "index": 0}}',
        GOOD,
    ),
    Kind(
        "cluster-not-an-object",
        "error",
        "The cluster is no object",
        "It leads from each job to its addresses.",
        '{"cluster": ["a:2222", "b:2222"], "task": {"type": "worker", "index": 0}}',
        GOOD,
    ),
    Kind(
        "job-unknown",
        "error",
        "A job that TensorFlow does not know",
        "`workers`, `Worker`, `ps_hosts`: the strategies refuse all but chief, worker, ps and evaluator.",
        text('"workers": ["a:2222", "b:2222"]'),
        GOOD,
    ),
    Kind(
        "job-master",
        "error",
        "The job `master`",
        "TensorFlow 1 called the chief so. The strategies of TensorFlow 2 refuse the name.",
        text('"master": ["c:2222"], "worker": ["a:2222"]'),
        text('"chief": ["c:2222"], "worker": ["a:2222"]'),
    ),
    Kind(
        "job-not-a-list",
        "error",
        "A job without brackets",
        "A job is a list, also with one address; or an object from index to address.",
        text('"worker": "a:2222,b:2222"'),
        GOOD,
    ),
    Kind(
        "job-empty",
        "depends",
        "A job without tasks",
        "It changes nothing, and someone meant something by it. An error if no job of the cluster has a task.",
        text('"worker": ["a:2222", "b:2222"], "ps": []'),
        GOOD,
    ),
    Kind(
        "job-index-wrong",
        "error",
        "A job as an object, with keys that are no indices",
        "`int` takes signs, spaces and the digits of every script; others that read the text do not.",
        text('"worker": {"first": "a:2222", "1": "b:2222"}'),
        text('"worker": {"0": "a:2222", "1": "b:2222"}'),
    ),
    Kind(
        "job-index-twice",
        "error",
        "One index written in two ways",
        "The later one wins, and an address is lost.",
        text('"worker": {"0": "a:2222", "00": "b:2222"}'),
        text('"worker": {"0": "a:2222", "1": "b:2222"}'),
    ),
    Kind(
        "job-has-gaps",
        "depends",
        "A job as an object, with tasks left out",
        "A server of a parameter-server cluster may know only some tasks. An error for MultiWorkerMirroredStrategy.",
        text('"worker": {"1": "b:2222"}, "ps": ["p:2222"]', '"type": "worker", "index": 1'),
        text('"worker": {"0": "a:2222", "1": "b:2222"}, "ps": ["p:2222"]', '"type": "worker", "index": 1'),
    ),
    Kind(
        "address-not-text",
        "error",
        "An address that is no text",
        "Numbers, null and lists in lists stop TensorFlow with an error about bytes.",
        _second("2222"),
        GOOD,
    ),
    Kind("address-empty", "error", "An empty address", "Nobody can dial it.", _second('""'), GOOD),
    Kind(
        "address-has-spaces",
        "error",
        "Spaces in an address",
        "They come from `split(',')` of a list with spaces, and make another host of it.",
        _second('" b:2222"'),
        GOOD,
    ),
    Kind(
        "address-scheme",
        "error",
        "A URL instead of an address",
        "TensorFlow adds the protocol itself.",
        _second('"http://b:2222"'),
        GOOD,
    ),
    Kind(
        "address-no-port",
        "error",
        "An address without a port",
        "TensorFlow has no default port.",
        _second('"b"'),
        GOOD,
    ),
    Kind(
        "address-port-wrong",
        "error",
        "A port that does not exist",
        "Ports are whole numbers from 1 to 65535.",
        _second('"b:222222"'),
        GOOD,
    ),
    Kind(
        "address-port-zero",
        "error",
        "Port 0 among several tasks",
        "The system picks a port, and no other task learns which. (A task that is alone may have it.)",
        _second('"b:0"'),
        GOOD,
    ),
    Kind(
        "address-ipv6-brackets",
        "error",
        "IPv6 without brackets",
        "Without brackets nobody knows where the port begins.",
        _second('"fd00::7:2222"'),
        _second('"[fd00::7]:2222"'),
    ),
    Kind(
        "host-wrong",
        "error",
        "No host name and no IP address",
        "No resolver can find it.",
        _second('"10.0.0.256:2222"'),
        _second('"10.0.0.25:2222"'),
    ),
    Kind(
        "host-underscore",
        "warning",
        "An underscore in a host name",
        "Docker Compose makes such names. They are no host names by the rules, and some resolvers refuse them.",
        _second('"worker_b:2222"'),
        _second('"worker-b:2222"'),
    ),
    Kind(
        "host-wildcard",
        "warning",
        "0.0.0.0 as an address",
        "It means every interface of the machine that listens; nobody else can dial it.",
        text('"worker": ["0.0.0.0:2222", "0.0.0.0:2223"]'),
        text('"worker": ["localhost:2222", "localhost:2223"]'),
    ),
    Kind(
        "hosts-mixed",
        "error",
        "localhost beside real hosts",
        "localhost is whichever machine reads it: the others look for this task on themselves.",
        _second('"localhost:2222"'),
        GOOD,
    ),
    Kind(
        "address-twice",
        "error",
        "Two tasks at one place",
        "Two processes cannot listen at one port. TensorFlow listens on all interfaces, so localhost:2222, "
        "127.0.0.1:2222 and 127.0.0.2:2222 are one place; all jobs count.",
        text('"worker": ["a:2222"], "ps": ["a:2222"]'),
        text('"worker": ["a:2222"], "ps": ["a:2223"]'),
    ),
    Kind(
        "chief-many",
        "error",
        "Several chiefs",
        "A cluster has one chief or none.",
        text('"chief": ["a:2222", "b:2222"]', '"type": "chief", "index": 0'),
        text('"chief": ["a:2222"], "worker": ["b:2222"]', '"type": "chief", "index": 0'),
    ),
    Kind(
        "evaluator-many",
        "error",
        "Several evaluators",
        "TensorFlow allows one.",
        text('"worker": ["a:2222", "b:2222"], "evaluator": ["e:2222", "f:2222"]'),
        GOOD,
    ),
    Kind(
        "evaluator-in-cluster",
        "depends",
        "The evaluator listed in the cluster",
        "An error with parameter servers: the coordinator waits for ever for a server that the evaluator does not run. "
        "Else a warning. Leave it out of the cluster, and set only the task of its own process.",
        text(f'{_ALL}, "evaluator": ["e:2222"]'),
        text(_ALL, '"type": "evaluator", "index": 0'),
    ),
    Kind(
        "worker-missing",
        "error",
        "Parameter servers without workers",
        "Nobody computes: the chief only coordinates.",
        text(f'"chief": ["c:2222"], {_PS}', '"type": "chief", "index": 0'),
        text(_ALL, '"type": "chief", "index": 0'),
    ),
    Kind(
        "ps-missing",
        "error",
        "ParameterServerStrategy without a ps",
        "Its variables live on parameter servers.",
        text('"chief": ["c:2222"], "worker": ["a:2222"]'),
        text(_ALL),
        "parameter_server",
    ),
    Kind(
        "chief-missing",
        "warning",
        "Parameter servers without a chief",
        "Someone outside the cluster must coordinate; without one the workers wait for ever.",
        text(f'"worker": ["a:2222"], {_PS}'),
        text(_ALL),
    ),
    Kind(
        "ps-with-multi-worker",
        "error",
        "A ps for MultiWorkerMirroredStrategy",
        "The strategy has no use for it; its coordination waits for the ps, which cannot build the strategy.",
        text('"worker": ["a:2222", "b:2222"], "ps": ["p:2222"]'),
        GOOD,
        "multi_worker",
    ),
    Kind(
        "single-task",
        "warning",
        "One task in the whole cluster",
        "It trains alone: often each process was told of itself only.",
        text('"worker": ["a:2222"]'),
        GOOD,
    ),
)
