"""Who is in a cluster: which tasks, at which addresses, and what does each find in TF_CONFIG?

    workers=2, ps=1                 worker:0  worker:1  ps:0      and this process coordinates, as the chief
    workers=2, ps=1, chief=True     chief:0  worker:0  worker:1  ps:0
    evaluator=True                  and evaluator:0, which is no member: a coordinator would wait for its server

Cost: nothing is started here. Left out: addresses on other machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdistedu.cluster.ports import reserve_port
from tfdistedu.errors import BadInput

if TYPE_CHECKING:
    import tensorflow as tf


def _tf_config(addresses: dict[str, list[str]], job: str, index: int) -> dict[str, Any]:
    """Build the TF_CONFIG of one task: an evaluator has one too, and is no member of the cluster."""
    return {"cluster": addresses, "task": {"type": job, "index": index}}


class Members:
    """The tasks of a cluster on this machine.

    Its `tasks` are their names, such as `["worker:0", "worker:1"]`; its `addresses` are those of TF_CONFIG, by job.

    Args:
        workers: Number of workers.
        ps: Number of parameter servers.
        chief: Whether there is a chief.
        evaluator: Whether there is an evaluator.

    Raises:
        BadInput: Numbers of tasks that make no cluster.

    """

    def __init__(self, workers: int, ps: int, chief: bool, evaluator: bool):
        for name, number in (("workers", workers), ("ps", ps)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise BadInput(f"LocalCluster({name}={number!r}): a whole number of tasks, 0 or more.")
        if workers + bool(chief) < 1 or (ps and not workers):
            raise BadInput(f"LocalCluster(workers={workers}, ps={ps}): a cluster has at least one worker.")
        jobs = {"chief": int(bool(chief)), "worker": workers, "ps": ps, "evaluator": int(bool(evaluator))}
        self.tasks = [f"{job}:{index}" for job, number in jobs.items() for index in range(number)]
        self._coordinates = ps > 0 and not chief  # this process does
        jobs |= {"chief": 1} if self._coordinates else {}
        self._sizes = {job: number for job, number in jobs.items() if number and job != "evaluator"}
        self.addresses: dict[str, list[str]] = {}
        self._serving = [task for task in self.tasks if ps and task.split(":")[0] in ("worker", "ps")]

    def reserve(self) -> None:
        """Find an address for each task; entering the context does it."""
        self.addresses = {job: [f"localhost:{reserve_port()}" for _ in range(n)] for job, n in self._sizes.items()}

    @property
    def tf_config(self) -> dict[str, Any]:
        """This process's TF_CONFIG, when it coordinates: a dictionary, of which `json.dumps` makes the variable."""
        if not self._coordinates:
            raise BadInput("this process is no member of the cluster (it coordinates when there are ps and no chief).")
        return _tf_config(self.addresses, "chief", 0)

    def tf_config_of(self, task: str) -> dict[str, Any]:
        """Return the TF_CONFIG of a task.

        Args:
            task: Its name.

        Returns:
            The dictionary.

        """
        self._check_name(task)
        job, index = task.split(":")
        return _tf_config(self.addresses, job, int(index))

    def resolver(self) -> tf.distribute.cluster_resolver.ClusterResolver:
        """Return what `tf.distribute.ParameterServerStrategy` takes in this process, the coordinator.

        Returns:
            A cluster resolver that knows all addresses.

        """
        config = self.tf_config
        from tfdistedu.quiet import import_tensorflow

        tf = import_tensorflow()
        return tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(config["cluster"]), task_type="chief", task_id=0, rpc_layer="grpc"
        )

    def _names(self, on: str | list[str] | None) -> list[str]:
        if on is None:
            names = [task for task in self.tasks if task not in self._serving]
            if not names:
                raise BadInput(
                    "all tasks of this cluster serve, and this process coordinates: give cluster.resolver() to "
                    'ParameterServerStrategy here. run(..., on="worker:0") runs a function beside the serving.'
                )
            return names
        names = []
        for name in [on] if isinstance(on, str) else on:
            found = [task for task in self.tasks if task == name or task.split(":")[0] == name]
            if not found:
                self._check_name(name)
            names += [task for task in found if task not in names]
        return names

    def _check_name(self, task: str) -> None:
        if task not in self.tasks:
            raise BadInput(f"there is no task {task!r} in this cluster; it has {', '.join(self.tasks)}.")
