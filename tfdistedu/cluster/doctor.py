"""Why does this cluster not start?

    machine     Python, TensorFlow, Keras and what each strategy can do with it, CPUs, GPUs, memory
    TF_CONFIG   every finding of `cluster.config`
    this task   its address is this machine's, its port free
    the others  each one dialled from here, and named if it does not answer

The doctor never wakes TensorFlow, and does not import it: it looks at files, and asks the network with short deadlines.
Every edge of a cluster matters, and only its two ends can test it: run the doctor as each task, on its machine.

Cost: a tenth of a second, and one deadline if somebody does not answer. Left out: speed; a firewall that lets the
first words pass.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from tfdistedu.cluster import machine as machines
from tfdistedu.cluster.config import ClusterConfig, Finding, parse
from tfdistedu.cluster.config.addresses import split
from tfdistedu.cluster.probe import Edge, is_here, listener, own_port, probe, within
from tfdistedu.cluster.symptoms import SYMPTOM
from tfdistedu.errors import BadInput
from tfdistedu.quiet import is_awake, who_woke_tensorflow

STRATEGIES = ("multi_worker", "parameter_server", "mirrored")
_GB_PER_TASK = 0.6
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")  # in small letters: gRPC reads no others
_SPARED = ("no_grpc_proxy", "no_proxy")


@dataclass
class Report:
    """What the doctor saw.

    Attributes:
        machine: As `machine.look` gives it.
        config: The config, if TF_CONFIG is set and has no errors.
        is_set: Whether there is a TF_CONFIG.
        findings: Everything that is wrong.
        edges: The way to each other task; empty if nobody was dialled.

    """

    machine: dict
    config: ClusterConfig | None = None
    is_set: bool = False
    findings: list[Finding] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        """The findings that must be mended."""
        return [finding for finding in self.findings if finding.is_error]

    @property
    def warnings(self) -> list[Finding]:
        """The findings that can work."""
        return [finding for finding in self.findings if not finding.is_error]

    @property
    def keras(self) -> int:
        """Which Keras `tf.keras` is: 2 or 3."""
        return 2 if self.machine["legacy_keras"] else 3

    def as_json(self) -> dict:
        """Return everything as `--json` writes it.

        Returns:
            `errors`, `warnings`, `machine`, `strategies`, `task`, `tf_config`, `edges`.

        """
        edges = [{"to": e.task.name, "address": e.task.address, "status": e.status} for e in self.edges]
        return {
            "errors": [finding.as_json() for finding in self.errors],
            "warnings": [finding.as_json() for finding in self.warnings],
            "machine": self.machine,
            "strategies": machines.STRATEGIES[self.keras],
            "task": self.config.name if self.config else None,
            "tf_config": self.config.as_json() if self.config else None,
            "edges": edges,
        }

    def add(self, code: str, where: str, message: str, remedy: str) -> None:
        """Add a finding about the machine or the way to another task.

        Args:
            code: One of `symptoms`.
            where: The place.
            message: What is wrong.
            remedy: What to do.

        """
        self.findings.append(Finding(code, where, message, remedy, SYMPTOM[code].severity == "error"))


def examine(
    text: str | None, strategy: str | None = None, dial: bool = True, deadline: float = 1.0, machine: dict | None = None
) -> Report:
    """Look at this machine, at a TF_CONFIG, and at the tasks that it names.

    Args:
        text: The TF_CONFIG; `None` if it is not set.
        strategy: "multi_worker", "parameter_server", "mirrored", or `None`: what the cluster suggests.
        dial: Whether to try ports and dial other tasks.
        deadline: Seconds for each of these.
        machine: What `machine.look()` gave; `None` looks.

    Returns:
        The report.

    Raises:
        BadInput: There is no such strategy, or the deadline is not above 0.

    """
    if strategy is not None and strategy not in STRATEGIES:
        raise BadInput(f"doctor: there is no strategy {strategy!r}; there are {', '.join(STRATEGIES)}.")
    if not 0 < deadline < 3600:
        raise BadInput(f"doctor: the deadline is seconds above 0, not {deadline:g}.")
    report = Report(machines.look() if machine is None else machine, is_set=text is not None)
    _packages(report)
    if text is None:
        if strategy in ("multi_worker", "parameter_server"):
            message = "TF_CONFIG is not set, so this strategy would train on this machine alone, without a word"
            report.add("config-not-set", "TF_CONFIG", message, "Set it before the program starts.")
        return report
    parsed = parse(text, None if strategy == "mirrored" else strategy)
    report.findings += parsed.findings
    report.config = parsed.config
    if report.config is not None and report.config.tasks:
        if len(report.config.tasks) > 1:
            _strategy(report, strategy)
            _surroundings(report)
        if dial:
            _own_task(report, deadline)
            others = () if report.config.me and report.config.me[0] == "evaluator" else report.config.others
            report.edges = probe(others, deadline)
            for edge in report.edges:
                _judge(edge, report)
    return report


def _packages(report: Report) -> None:
    m = report.machine
    if not machines.python_is_right():
        message = f"this is Python {m['python']}"
        report.add("python-version", "python", message, "Make an environment with Python 3.11, 3.12 or 3.13.")
    if m["tensorflow"] is None:
        report.add("tensorflow-missing", "tensorflow", "it is not installed here", "pip install 'tensorflow~=2.21.0'")
    elif not m["tensorflow"].startswith("2.21"):
        message = f"this is {m['tensorflow']}, and all that is said here was seen with 2.21"
        report.add("tensorflow-version", "tensorflow", message, "Read the advice with care, or install 2.21.")
    if m["keras"] is None:
        report.add("keras-missing", "keras", "it is not installed here", "pip install 'keras~=3.15.0'")
    elif not m["keras"].startswith("3.15"):
        message = f"this is {m['keras']}, and what each strategy can do was seen with 3.15"
        report.add("keras-version", "keras", message, "Read the advice with care, or install 3.15.")
    if m["legacy_keras"] and m["tf_keras"] is None:
        message = "TF_USE_LEGACY_KERAS asks for Keras 2, and tf_keras is not installed"
        report.add("tf-keras-missing", "tf_keras", message, "pip install 'tf_keras~=2.21.0', or unset the variable.")


def _strategy(report: Report, strategy: str | None) -> None:
    """Say what the strategy does with this cluster."""
    if strategy == "mirrored":
        message = (
            f"TF_CONFIG names {len(report.config.tasks)} tasks, and MirroredStrategy is for one machine: it reads none"
        )
        report.add("config-not-used", "TF_CONFIG", message, "Use MultiWorkerMirroredStrategy, or unset TF_CONFIG.")
        return
    servers = strategy == "parameter_server" or bool(report.config.of("ps"))
    if is_awake() and not servers:
        message = f"MultiWorkerMirroredStrategy cannot be built in it any more. It was woken by {who_woke_tensorflow()}"
        report.add(
            "tensorflow-awake", "this process", message, "Build the strategy first; restart the notebook's kernel."
        )
    if report.keras == 3 and report.machine["keras"]:
        if servers:
            message = "`fit` of Keras 3 does not work with ParameterServerStrategy"
            report.add("keras-fit-ps", "keras", message, "Use a custom loop with a ClusterCoordinator, or tf_keras.")
        else:
            message = "`fit` of Keras 3 fails as shipped under MultiWorkerMirroredStrategy"
            remedy = "`tfdistedu recipe show multi_worker_fit` mends it; or use a custom loop, or tf_keras."
            report.add("keras-fit-multi-worker", "keras", message, remedy)


def _surroundings(report: Report) -> None:
    """Look at what lies between the tasks, and at the memory for those of this machine."""
    hosts = list(dict.fromkeys(split(task.address).host for task in report.config.tasks))
    proxy = next((name for name in _PROXIES if os.environ.get(name)), None)
    spared = next((os.environ[name] for name in _SPARED if os.environ.get(name)), "").split(",")
    caught = [host for host in hosts if not any(end.strip() and host.endswith(end.strip()) for end in spared)]
    if proxy and caught:
        message = (
            f"it is set, so gRPC would dial {', '.join(caught[:5])} through {_without_password(os.environ[proxy])}"
        )
        remedy = f"Unset it for the tasks, or add the hosts: no_proxy={','.join(caught[:5])}"
        report.add("proxy-set", proxy, message, remedy)
    own = report.config.address and split(report.config.address).place[0]
    n_here = sum(split(task.address).place[0] == own for task in report.config.tasks)
    free = report.machine["memory_free_gb"]
    if free is not None and free < _GB_PER_TASK * n_here:
        message = f"{free:g} GB are free, and {n_here} tasks on this machine need about {_GB_PER_TASK * n_here:.1f} GB"
        report.add("memory-short", "memory", message, "End other programs, or start fewer tasks here.")


def _without_password(address: str) -> str:
    """Return a proxy's address without the user that may stand in it; reports are shown to others."""
    scheme, found, rest = address.rpartition("://")
    return scheme + found + rest.rpartition("@")[2]


def _own_task(report: Report, deadline: float) -> None:
    config = report.config
    if config.address is None:
        return
    host, port = split(config.address)
    here = within(deadline, is_here, host)
    if here is None:
        message = f"this machine does not know its own name {host!r}"
        report.add("host-not-found", config.name, message, "Correct it, or write the IP address.")
    elif not here:
        message = f"its address {config.address} is not this machine's: the others would dial another one"
        report.add("host-not-this-machine", config.name, message, "Run it there, or correct the task's index.")
    free, why = own_port(port)
    if free:
        return
    who = listener(port)
    same = who and (there := parse(who[2]).config) and there.me == config.me and there.tasks == config.tasks
    if same:
        message = f"it runs already, as process {who[0]} ({who[1][:60]})"
        report.add("task-running", config.name, message, "Look at that one, or end it before you start another.")
        return
    by = f"process {who[0]} ({who[1][:60]}) listens there" if who else why
    message = f"its port {port} is not free: {by}"
    report.add(
        "port-taken", config.name, message, "End that program, or take another port in the TF_CONFIG of all tasks."
    )


def _judge(edge: Edge, report: Report) -> None:
    """Turn an edge that does not work into a finding."""
    task, detail = edge.task, f" ({edge.detail})" if edge.detail else ""
    at = f"{task.name} at {task.address}"
    if edge.status == "unresolved":
        message = f"the host of {at} is not found from here{detail}"
        report.add("host-not-found", task.name, message, "Correct the name, or write the IP address.")
    elif edge.status == "refused":
        message = f"{at} is not there: the host answers, and nobody listens at the port{detail}"
        remedy = "Start it; or its TF_CONFIG has another port. To look at the text alone: --no-probe."
        report.add("task-not-answering", task.name, message, remedy)
    elif edge.status == "no-answer":
        message = f"{at} does not answer{detail}"
        remedy = "The host is down, the address is wrong, or a firewall drops the call."
        report.add("task-not-answering", task.name, message, remedy)
    elif edge.status == "silent":
        message = f"{at} takes the call and says nothing: its process is paused or hangs"
        report.add("task-silent", task.name, message, "Look at that process; end it and start the job again.")
    elif edge.status == "other":
        message = f"something else than TensorFlow answers for {at}{detail}"
        report.add("not-tensorflow", task.name, message, "Another program has the port: end it, or take another port.")
