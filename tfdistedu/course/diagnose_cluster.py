"""Where does a set of TF_CONFIGs first go wrong? In the words of the doctor, and then in those of the plan.

The idea: look at one text alone as long as one text alone can be wrong; then at all together.

    each text     parse       worker:0, cluster.worker[1]: "b" has no port [address-no-port]
    each process  who am I    two processes are worker:1: each text alone is right, and one address has no listener
    all           who is there    worker:1 looks for ps:0 at carl:2222; the plan says carl:2223

The findings' remedies are left out: they would be the answer. `tfdistedu explain CODE` has them.

Costs: one parse a text. Leaves out: the network; see `tfdistedu.cluster.doctor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tfdistedu.cluster.config import ClusterConfig, Finding, parse
from tfdistedu.course.runner import attempt
from tfdistedu.course.wrong import Wrong


def texts_of(function: Callable[..., Any], names: list[str], *arguments: Any) -> dict[str, str]:
    """Call a function that makes TF_CONFIGs, and check that it makes one for each process.

    Args:
        function: The function under test.
        names: The processes, such as "worker:0", in the plan's order.
        *arguments: What it is given.

    Returns:
        The texts in the plan's order.

    Raises:
        Wrong: It returns something else, or there is a process too few or too many.

    """
    call = _call(function, arguments)
    texts = function(*arguments)
    if not isinstance(texts, Mapping) or not all(isinstance(text, str) for text in texts.values()):
        raise Wrong(
            f"{call} has to return a dictionary from process to text.",
            called=call,
            came=_short(texts),
            expected='{"worker:0": "...", ...}, and each text JSON',
            why="TF_CONFIG is an environment variable, and those hold texts; json.dumps makes one",
        )
    for name in [*names, *texts]:
        if (name in texts) != (name in names):
            what = "has no text for" if name in names else "has a text for"
            raise Wrong(
                f"{call} {what} {name}.",
                called=call,
                came=", ".join(map(str, texts)) or "none",
                expected=", ".join(names),
                why="each job counts its tasks for itself, from 0",
            )
    return {name: texts[name] for name in names}


def check_findings(call: str, texts: Mapping[str, str], only: str = "") -> None:
    """Fail at the first thing that is wrong in a text by itself; a warning counts too.

    Args:
        call: How the function was called.
        texts: From process to text.
        only: Only findings whose code begins so.

    Raises:
        Wrong: The message has process, place, reason and code.

    """
    for name, text in texts.items():
        for finding in _findings(text):
            if finding.code.startswith(only):
                raise Wrong(
                    f"{name}, {finding.where}: {finding.message} [{finding.code}].",
                    called=call,
                    came=_short(text),
                    why=f"`tfdistedu explain {finding.code}` shows an example and its remedy",
                )


def check_identities(call: str, texts: Mapping[str, str]) -> None:
    """Fail when a process would be another than it is: no check of one text alone can see that.

    Args:
        call: How the function was called.
        texts: From process to text; nothing is wrong in any.

    Raises:
        Wrong: The message names the first process that takes itself for another.

    """
    names = {name: _config(text).name for name, text in texts.items()}
    for name, believes in names.items():
        if believes == name:
            continue
        twice = sum(other == believes for other in names.values()) > 1
        raise Wrong(
            f"{name} takes itself for {believes or 'nobody'}.",
            called=call,
            came=f"its task is {believes}",
            expected=f"its task is {name}",
            why="the cluster is the same in all texts, and the task is another one in each",
            symptom=f"two processes are {believes} and nobody is {name}, so all wait for {name}" if twice else "",
        )


def check_plan(call: str, texts: Mapping[str, str], plan: ClusterConfig) -> None:
    """Fail when a process knows another cluster than the plan's.

    Args:
        call: How the function was called.
        texts: From process to text; nothing is wrong in any.
        plan: A config with the cluster that is meant.

    Raises:
        Wrong: The message names the first process, task and address.

    """
    right = {task.name: task.address for task in plan.tasks}
    for name, text in texts.items():
        mine = {task.name: task.address for task in _config(text).tasks}
        for task in [*right, *mine]:
            if mine.get(task) == right.get(task):
                continue
            seen = f"{task} at {mine[task]}" if task in mine else f"no {task}"
            raise Wrong(
                f"{name} knows {seen}; the plan has {f'it at {right[task]}' if task in right else 'none'}.",
                called=call,
                came=seen,
                expected=f"{task} at {right[task]}" if task in right else f"no {task}",
                why="every process reads the same cluster; one that reads another one dials where nobody listens",
            )


def probe_texts(function: Callable[..., Any], *arguments: Any) -> list[Any] | str:
    """Return what a set of texts means, for a fingerprint: how JSON is written is left out.

    Args:
        function: The function under test.
        *arguments: What it is given.

    Returns:
        For each process: what is found in its text, who it takes itself for, and whom it knows.

    """
    texts = attempt(function, *arguments)
    if not isinstance(texts, Mapping):
        return str(texts) if isinstance(texts, str) else type(texts).__name__
    return [[str(name), _meaning(text)] for name, text in sorted(texts.items(), key=str)]


def _meaning(text: Any) -> list[Any] | str:
    """Return what one text means; of one that is wrong, what is wrong."""
    if not isinstance(text, str):
        return type(text).__name__
    parsed = parse(text)
    found = sorted([finding.code, finding.where] for finding in parsed.findings)
    if parsed.config is None:
        return found
    return [found, parsed.config.name, [list(task) for task in parsed.config.tasks]]


def _findings(text: str) -> tuple[Finding, ...]:
    return parse(text).findings


def _config(text: str) -> ClusterConfig:
    return parse(text).config or ClusterConfig()


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    return f"{function.__name__}({', '.join(map(repr, arguments))})"


def _short(value: Any, most: int = 300) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]}..."
