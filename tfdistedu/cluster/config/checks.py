"""Do the parts of a TF_CONFIG fit together?

    read the text      -> an object                                                reading
    each key           -> known, or meant to be known
    each job           -> known; a list, or an object from index to address
    each address       -> host and port                                            addresses
    all addresses      -> each once; this machine's own names and real hosts not mixed
    the task           -> a known job and an index in it                        task
    the roles          -> what the strategy needs, and nothing that it cannot use   roles

Each check goes on as far as it can, so that one run shows all that is wrong. Cost: linear in the text. Left out: which
of several wrong things was meant to be right; the config is `None` as long as there is one error.
"""

from __future__ import annotations

import json
import math

from tfdistedu.cluster.config.addresses import HostPort, check, split
from tfdistedu.cluster.config.findings import Finding, Parsed, did_you_mean, meant, shown
from tfdistedu.cluster.config.model import JOBS, ClusterConfig, Task
from tfdistedu.cluster.config.reading import read
from tfdistedu.cluster.config.roles import check_roles
from tfdistedu.cluster.config.task import check_task, digits
from tfdistedu.errors import BadInput

STRATEGIES = ("multi_worker", "parameter_server")
# Keys beside "cluster" and "task" that TensorFlow, Keras or a launcher in the cloud writes or reads.
_KNOWN_BESIDE = ("environment", "job", "master", "model_dir", "rpc_layer", "service", "session_master", "cloud")


def parse(text: str, strategy: str | None = None) -> Parsed:
    """Check the text of a TF_CONFIG, and read it.

    Args:
        text: The value of the variable.
        strategy: "multi_worker", "parameter_server", or `None`: parameter servers if the cluster lists a ps.

    Returns:
        The config (`None` if there are errors) and all findings.

    Raises:
        BadInput: `text` is no text, or there is no such strategy.

    Example:
        >>> parse('{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": "1"}}').config.address
        'b:1'
        >>> parse('{"cluster": {"worker": ["a:1", "b"]}, "task": {"type": "worker", "index": 2}}').codes
        ('address-no-port', 'task-index-not-in-job')

    """
    if not isinstance(text, str):
        raise BadInput(f"parse(text): TF_CONFIG is a text, not {type(text).__name__}. For a dictionary: json.dumps.")
    if strategy is not None and strategy not in STRATEGIES:
        raise BadInput(f"parse(strategy): there is no {strategy!r}. {did_you_mean(str(strategy), STRATEGIES)}")
    data, found = read(text)
    if data is None:
        return Parsed(None, tuple(found))
    misspelt = _check_keys(data, found)
    tasks, jobs_are_right = _check_cluster(data, found, misspelt)
    # Which tasks there are is known also where an address is wrong.
    counted = not any(f.is_error and f.code.startswith(("job-", "cluster-", "key-")) for f in found)
    me = check_task(data, found, misspelt, tasks if counted else None, strategy)
    if jobs_are_right:
        _check_together(tasks, found)
        found += check_roles(tasks, me, strategy)
    if any(finding.is_error for finding in found):
        return Parsed(None, tuple(found))
    rest = {key: json.dumps(value, sort_keys=True) for key, value in data.items() if key not in ("cluster", "task")}
    return Parsed(ClusterConfig(tuple(tasks), me, tuple(sorted(rest.items()))), tuple(found))


def _check_keys(data: dict, found: list[Finding]) -> set[str]:
    """Find keys that are not known; return those of "cluster" and "task" that were meant and are missing."""
    misspelt = set()
    for key in data:
        if key in ("cluster", "task", *_KNOWN_BESIDE):
            continue
        guess = meant(key, ("cluster", "task"))
        if guess and guess not in data:
            misspelt.add(guess)
            message = f'TensorFlow reads the key "{guess}" and passes over {shown(key)}, without a word'
            found.append(Finding("key-misspelt", shown(key), message, f'Did you mean "{guess}"?'))
        elif meant(key) and "cluster" not in data:
            misspelt.add("cluster")
            message = f'{shown(key)} stands beside the key "cluster", and belongs into it'
            remedy = f'Write {{"cluster": {{"{meant(key)}": [...]}}, "task": ...}}.'
            found.append(Finding("key-misspelt", shown(key), message, remedy))
        else:
            message = f"nothing of TensorFlow reads the key {shown(key)}"
            found.append(Finding("key-unknown", shown(key), message, "Leave it out.", is_error=False))
    rpc = data.get("rpc_layer", "grpc")
    if rpc not in ("grpc", "", None):
        message = f"{shown(rpc)} is no protocol that TensorFlow has outside Google: grpc alone works"
        found.append(Finding("rpc-layer", "rpc_layer", message, "Leave the key out."))
    if not _finite(data):
        message = "NaN or Infinity stands in it, which JSON does not have, though Python reads it"
        found.append(Finding("json-not-finite", "the text", message, "Write a number."))
    return misspelt


def _finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(_finite(item) for item in inner)


def _check_cluster(data: dict, found: list[Finding], misspelt: set[str]) -> tuple[list[Task], bool]:
    """Return the tasks, and whether all of them could be read."""
    if "cluster" not in data or data["cluster"] == {}:
        if "cluster" not in misspelt:
            message = "there is no cluster in it, so every process trains alone, and no one says so"
            remedy = 'Name all tasks: {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": ...}; or unset TF_CONFIG.'
            found.append(Finding("cluster-missing", "cluster", message, remedy, is_error=False))
        return [], "cluster" not in misspelt
    cluster = data["cluster"]
    if not isinstance(cluster, dict):
        message = f"{shown(cluster)} is no object from jobs to addresses"
        remedy = 'Write {"worker": ["a:2222", "b:2222"]}.'
        found.append(Finding("cluster-not-an-object", "cluster", message, remedy))
        return [], False
    tasks, before = [], len(found)
    for job, addresses in cluster.items():
        where = f"cluster.{job}" if job.isidentifier() else f"cluster[{shown(job)}]"
        if job not in JOBS:
            guess = meant(job)
            message = f"there is no job {shown(job)}: TensorFlow's strategies know chief, worker, ps and evaluator"
            code = "job-master" if job.lower() == "master" else "job-unknown"
            there = f' There is a "{guess}" too: keep one.' if guess in cluster else ""
            found.append(Finding(code, where, message, did_you_mean(job) + there))
        tasks += _check_job(job, addresses, where, found, alone=not any(cluster.values()))
    right = not any(finding.is_error for finding in found[before:])
    order = {job: place for place, job in enumerate(JOBS)}
    return sorted(tasks, key=lambda task: (order.get(task.job, 9), task.index)), right


def _check_job(job: str, addresses: object, where: str, found: list[Finding], alone: bool) -> list[Task]:
    """Return a job's tasks; `alone`: no job of this cluster has any."""
    if not isinstance(addresses, list | dict):
        message = f"{shown(addresses)} is no list of addresses"
        text = addresses if isinstance(addresses, str) and addresses else "a:2222"
        split_up = [part.strip() for part in text.split(",")]
        found.append(Finding("job-not-a-list", where, message, f"Write {shown(split_up, 200)}."))
        return []
    if not addresses:
        message = "the job has no tasks" + (", and no other job has any" if alone else "")
        found.append(Finding("job-empty", where, message, "Leave the job out, or list its addresses.", is_error=alone))
    tasks: list[Task] = []
    seen: set[int] = set()
    keyed = addresses.items() if isinstance(addresses, dict) else enumerate(addresses)
    for key, address in keyed:
        place = f"{where}[{key if isinstance(key, int) else shown(key)}]"
        index = key if isinstance(key, int) else digits(key)
        if index is None:
            message = f"{shown(key)} is no index: a whole number from 0, in digits"
            found.append(Finding("job-index-wrong", place, message, 'Write {"0": "a:2222", "1": "b:2222"}.'))
            continue
        if index in seen:
            message = f"index {index} stands here twice, written in two ways"
            found.append(Finding("job-index-twice", place, message, "Number the tasks from 0, each once."))
        seen.add(index)
        found += check(address, place)
        tasks.append(Task(job, index, address))
    return tasks


def _check_together(tasks: list[Task], found: list[Finding]) -> None:
    """Hold the addresses against each other."""
    where: dict[tuple[str, int], Task] = {}
    kinds: dict[str, Task] = {}
    addresses: dict[Task, HostPort] = {task: split(task.address) for task in tasks}
    for task, address in addresses.items():
        if address.port == 0:
            continue
        first = where.setdefault(address.place, task)
        if first is not task:
            same = "the same address" if first.address == task.address else f"the same place as {shown(first.address)}"
            message = (
                f"{shown(task.address)} is {same}, which {first.name} has: two processes cannot listen at one port"
            )
            remedy = "Give each task of a machine a port of its own."
            found.append(Finding("address-twice", f"cluster.{task.job}[{task.index}]", message, remedy))
        kinds.setdefault("real" if address.kind == "real" else "here", task)
        if address.kind == "wildcard":
            message = (
                f"{shown(task.address)} is where a server listens; another task cannot dial it, but on one machine"
            )
            remedy = (
                "Write the name or the IP address by which the others reach this machine; localhost for one machine."
            )
            place = f"cluster.{task.job}[{task.index}]"
            found.append(Finding("host-wildcard", place, message, remedy, is_error=False))
    if len(kinds) == 2:
        here, real = kinds["here"], kinds["real"]
        message = (
            f"{shown(here.address)} of {here.name} means whichever machine reads it: from {real.name} on "
            f"{shown(real.address)} nobody reaches {here.name} there"
        )
        remedy = "Write the name or IP address of the machine, the same in the TF_CONFIG of every task."
        found.append(Finding("hosts-mixed", f"cluster.{here.job}[{here.index}]", message, remedy))
