"""Which task is this process, and is there such a task?

    {"type": "worker", "index": 1}     a job of the cluster, and a place in it, counted from 0

TensorFlow makes `int(...)` of the index, so 1.9 and true become 1, and looks at its upper bound alone: -1 passes.
Here an index is a whole number, or its digits as a text. Left out: the evaluator's index, which stands in no list.
"""

from __future__ import annotations

from tfdistedu.cluster.config.findings import Finding, did_you_mean, meant, shown
from tfdistedu.cluster.config.model import JOBS, Task

_KNOWN_KEYS = ("type", "index", "trial", "cloud")
_ALSO = {"id": "index", "task_id": "index", "task_index": "index", "rank": "index", "job": "type", "name": "type"}


def check_task(
    data: dict, found: list[Finding], misspelt: set[str], tasks: list[Task] | None, strategy: str | None
) -> tuple[str, int] | None:
    """Check what a text says of this process.

    Args:
        data: The whole text, read.
        found: Where findings are added.
        misspelt: "task", if it was found under another name.
        tasks: All tasks of the cluster; `None` if they could not be read.
        strategy: As in `parse`.

    Returns:
        Job and index, if both could be read.

    """
    if "task" not in data:
        if "task" not in misspelt and tasks:
            servers = strategy == "parameter_server" or (strategy is None and any(task.job == "ps" for task in tasks))
            message = "it does not say which task this process is"
            message += "; only a coordinator may do without" if servers else ", and TensorFlow refuses that"
            remedy = 'Add "task": {"type": "worker", "index": 0}, with another index in each process.'
            found.append(Finding("task-missing", "task", message, remedy, is_error=not servers))
        return None
    task = data["task"]
    if not isinstance(task, dict):
        remedy = 'Write {"type": "worker", "index": 0}.'
        found.append(Finding("task-not-an-object", "task", f"{shown(task)} is no object with type and index", remedy))
        return None
    renamed = _check_task_keys(task, found)
    job = _check_type(task, found, tasks) if "type" not in renamed else None
    index = _check_index(task, found) if "index" not in renamed else None
    if job is None or index is None:
        return None
    if tasks and job in JOBS:
        _check_place(job, index, tasks, found)
    return job, index


def _check_task_keys(task: dict, found: list[Finding]) -> set[str]:
    renamed = set()
    for key in task:
        if key in _KNOWN_KEYS:
            continue
        guess = _ALSO.get(key.lower()) or meant(key, ("type", "index"))
        if guess and guess not in task:
            renamed.add(guess)
            message = f'TensorFlow reads "{guess}" and passes over {shown(key)}'
            found.append(Finding("key-misspelt", f"task[{shown(key)}]", message, f'Did you mean "{guess}"?'))
        else:
            message = f"nothing of TensorFlow reads the key {shown(key)}"
            found.append(Finding("key-unknown", f"task[{shown(key)}]", message, "Leave it out.", is_error=False))
    return renamed


def _check_type(task: dict, found: list[Finding], tasks: list[Task] | None) -> str | None:
    if "type" not in task:
        message = "the task has no type, so TensorFlow does not know which job it is in"
        found.append(Finding("task-type-missing", "task", message, 'Add "type": "worker".'))
        return None
    job = task["type"]
    if job in JOBS:
        return job
    message = f"{shown(job)} is no job of TensorFlow's strategies: chief, worker, ps, evaluator"
    remedy = did_you_mean(job if isinstance(job, str) else "")
    found.append(Finding("task-type-unknown", "task.type", message, remedy))
    return None


def _check_index(task: dict, found: list[Finding]) -> int | None:
    if "index" not in task:
        message = "the task has no index, so all processes of its job would be the same one"
        found.append(
            Finding("task-index-missing", "task", message, 'Add "index": 0, and count up from process to process.')
        )
        return None
    index = task["index"]
    if isinstance(index, str) and digits(index) is not None:
        message = f"the index is the text {shown(index)}; TensorFlow makes a number of it, other programs may not"
        found.append(Finding("task-index-is-text", "task.index", message, f"Write {int(index)}.", is_error=False))
        return int(index)
    if isinstance(index, int) and not isinstance(index, bool):
        if index >= 0:
            return index
        message = f"{shown(index)} is below 0; TensorFlow lets it pass, and fails or hangs later"
        found.append(Finding("task-index-negative", "task.index", message, "Count from 0."))
        return None
    message = f"{shown(index)} is no whole number"
    found.append(
        Finding("task-index-wrong", "task.index", message, "Write the number of this process in its job: 0, 1, ...")
    )
    return None


def _check_place(job: str, index: int, tasks: list[Task], found: list[Finding]) -> None:
    """Look up this process in the cluster."""
    there = [task.index for task in tasks if task.job == job]
    if not there:
        if job != "evaluator":  # an evaluator is not a member of the cluster that it evaluates
            jobs = dict.fromkeys(task.job for task in tasks)
            message = f'this process is a "{job}", and the cluster has no such job: it has {", ".join(jobs)}'
            remedy = f'Add "{job}" to the cluster, with the address of this process, or correct the type.'
            found.append(Finding("task-type-not-in-cluster", "task.type", message, remedy))
        return
    if index in there:
        return
    last = max(there)
    if job == "worker" and index == last + 1 and any(task.job == "chief" for task in tasks):
        message = f"there is no worker {index}: the chief is not counted, and with a chief too workers start at 0"
        remedy = f"Number the workers 0 to {last}."
        found.append(Finding("task-index-counts-the-chief", "task.index", message, remedy))
        return
    has = f"{job}:{last}" if len(there) == 1 else f"{len(there)} tasks, {job}:{min(there)} to {job}:{last}"
    message = f"there is no {job}:{shown(index)} in the cluster: it lists {has}"
    remedy = "Count from 0: the first address of the list belongs to index 0."
    found.append(Finding("task-index-not-in-job", "task.index", message, remedy))


def digits(text: object) -> int | None:
    """Read a whole number that is given in ASCII digits, and nothing else.

    Args:
        text: A text, perhaps.

    Returns:
        The number; `None` for anything else, such as " 1", "+1", "1.0" or "１".

    """
    fits = isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= 18
    return int(text) if fits else None
