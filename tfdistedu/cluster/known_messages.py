"""What do TensorFlow's misleading messages really mean?

Many errors of a distributed job name what broke last and not what broke first: a tensor that "cannot be found" is a
machine that cannot be dialled. Each entry here joins texts that stand in logs with the cause. A test per entry makes
TensorFlow write the message, so an entry disappears on the day TensorFlow says it better.

The order is the order of certainty: where several match one log, the first is nearest to the cause, and those with
`is_echo` follow from another one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """A message of TensorFlow, and what it means.

    Attributes:
        code: Our name for it, such as "peer-unreachable".
        texts: What stands in the log; one of them is enough.
        title: The cause in a few words.
        cause: What has really happened.
        remedy: What to do.
        older: What other releases and other programs write for the same; TensorFlow 2.21 does not.
        is_echo: Whether it follows from another fault; then look for that one first.

    """

    code: str
    texts: tuple[str, ...]
    title: str
    cause: str
    remedy: str
    older: tuple[str, ...] = ()
    is_echo: bool = False


MESSAGES: tuple[Message, ...] = (
    Message(
        "peer-unreachable",
        ("failed to connect to all addresses", "Unable to find the relevant tensor remote_handle"),
        "One task cannot reach another",
        "An edge of the cluster is missing: some task cannot dial some other one, for example a worker the ps. That "
        "the chief reaches both proves nothing about the edge between them. The line about remote_handle is noise that "
        "follows. After a start it is a wrong address, a firewall or a proxy; in mid-training the peer has ended.",
        "Run `tfdistedu doctor` as each task, with its TF_CONFIG, on its machine. Unset http_proxy, https_proxy and "
        "grpc_proxy, or name the hosts in no_proxy. Look whether the ps still runs.",
    ),
    Message(
        "peer-left",
        ("stopped sending heartbeats", "Socket closed", "Connection reset by peer"),
        "Another task has ended",
        "It crashed, was killed or paused, or simply finished before the others. The task that reports this is not the "
        "one that failed.",
        "Read the log of the task that is named. Let all tasks leave together, after the last collective and the last "
        "save. After a crash start all tasks again, from the last checkpoint.",
    ),
    Message(
        "collective-deadline",
        ("Collective has timed out waiting for other workers",),
        "A collective that not all tasks called",
        "This task called an all-reduce and another did not within the time: it never started, is slow, ran out of "
        "data, or took another branch.",
        "Compare what each task did last: same number of steps, same order of collectives, none inside `if chief`. "
        "`CommunicationOptions(timeout_seconds=...)` sets the time.",
    ),
    Message(
        "collectives-mismatched",
        ("Shape mismatch in the collective instance",),
        "Tasks are in different collectives",
        "Collectives are matched by their order, not by name. Here two tasks met with different shapes: one has "
        "another model, another batch size in the reduced value, or skipped a call.",
        "Build the same model in every task and call the same collectives in the same order; reduce sums, whose shape "
        "does not depend on the batch.",
    ),
    Message(
        "group-size",
        ("is joining a group with size",),
        "A second strategy with other devices in one process",
        "On CPUs MirroredStrategy adds up with collectives, and a process keeps one group of devices for good. After "
        "this message everything fails in this process.",
        "Use `tf.distribute.ReductionToOneDevice()` (`tfdistedu.devices.mirrored_strategy` does), or one process for "
        "each number of replicas.",
    ),
    Message(
        "started-too-late",
        ("Collective ops must be configured at program startup",),
        "TensorFlow was awake before the strategy",
        "A tensor, a variable, `list_logical_devices` or an imported library woke TensorFlow, and its devices were "
        "fixed before MultiWorkerMirroredStrategy could add the other machines.",
        "Build the strategy as the first thing after the import. To look at devices before it, use "
        "`tf.config.list_physical_devices`.",
    ),
    Message(
        "trains-alone",
        ("Single-worker MultiWorkerMirroredStrategy",),
        "MultiWorkerMirroredStrategy without a cluster",
        "TF_CONFIG was not set (or held no cluster) when the strategy was built, so it trains on this machine alone. "
        "It is read once: setting it later changes nothing, and no error comes.",
        "Set TF_CONFIG before the program starts. Check `strategy.num_replicas_in_sync` against what you expect.",
    ),
    Message(
        "virtual-devices-late",
        ("Virtual devices cannot be modified after being initialized",),
        "The CPU is split too late",
        "TensorFlow fixes its devices at the first operation; something ran before.",
        "Split first thing in the program (`tfdistedu.devices.virtual_cpus`); in a notebook restart the kernel.",
    ),
    Message(
        "optimizer-not-built",
        ("You must feed a value for placeholder tensor 'cond",),
        "The optimizer's variables came into being inside the step",
        "Adam, or SGD with momentum, makes its variables at its first `apply`; inside a traced step under a strategy "
        "that breaks. The placeholder is not yours.",
        "Call `optimizer.build(model.trainable_variables)` in the scope, before the first step.",
    ),
    Message(
        "reduce-in-a-branch",
        ("`merge_call` called while defining a new graph",),
        "A synchronisation inside a branch",
        "Replicas must meet, and one cannot meet inside `tf.cond`, `tf.while_loop` or a nested tf.function. Keras's "
        "`gradient_accumulation_steps` does just that.",
        "Decide in Python, outside the step: one function that accumulates, one that applies "
        "(`tfdistedu.step.accumulate`).",
    ),
    Message(
        "strategies-mixed",
        ("Mixing different tf.distribute.Strategy objects", "must only be passed a variable created in this"),
        "Two strategy objects in one program",
        "Model, optimizer or checkpoint were made in the scope of another strategy object; often a notebook's cell ran "
        "twice.",
        "One strategy object a process. Make the model, the optimizer and the metrics in its scope.",
    ),
    Message(
        "data-ended",
        ("End of sequence",),
        "The data ended inside the step",
        "`next(iterator)` found nothing: fewer batches than steps, on this worker or on another. With several workers "
        "the one that ran out leaves, and the others wait in a collective.",
        "Repeat the dataset and count steps, or let all workers agree on the number of batches before the epoch.",
    ),
    Message(
        "too-few-files",
        ("not enough for the required",),
        "Fewer files than workers",
        "The sharding policy AUTO gives whole files to workers where a dataset reads files; there are not enough.",
        "Set the policy to DATA in `tf.data.Options`, write more files, or shard by hand.",
        older=("There aren't enough elements in this dataset for each shard",),
    ),
    Message(
        "keras-fit-fails",
        ("Invalid reduction dimension 0 for input with 0 dimensions", "Attempt to convert a value (PerReplica:"),
        "Keras 3 `fit` on several workers",
        "Keras 3 as shipped fails in two places under MultiWorkerMirroredStrategy: in the symbolic build, and when it "
        "averages scalar metrics over an axis that they do not have.",
        "Use the recipe multi_worker_fit, which mends it; or a custom loop, or tf_keras. See the page on what works "
        "where.",
    ),
    Message(
        "address-in-use",
        ("Could not start gRPC server",),
        "The port is taken",
        "Another program listens at this task's port: often the same task of the last run, which still hangs, or two "
        "tasks with one index.",
        "`tfdistedu doctor` names the process. End it, or take another port in every TF_CONFIG.",
        older=("Address already in use",),
    ),
    Message(
        "tf-config-not-json",
        ("Expecting property name enclosed in double quotes",),
        "TF_CONFIG is no JSON",
        "It is read when the strategy is built, and the error does not name it. Mostly a Python dictionary with single "
        "quotes, or a shell that took the quotes away.",
        "`tfdistedu doctor --no-probe` says what happened to the text.",
    ),
    Message(
        "task-not-given",
        ("you must also specify `task_type` and `task_id`",),
        "TF_CONFIG without a task",
        'The cluster is there, and "task" is missing, misspelt or incomplete.',
        'Add "task": {"type": "worker", "index": 0}, with another index in each process.',
    ),
    Message(
        "task-type-not-valid",
        ("not found in cluster_spec", "Unrecognized task_type", "Disallowed task type found in cluster spec"),
        "A job that does not exist, or is not listed",
        "Jobs are chief, worker, ps and evaluator. `master`, `workers` and `ps_hosts` are none, and the task's own job "
        "must be in the cluster.",
        "Correct the name; `tfdistedu doctor --no-probe` says which was meant.",
        older=("is not a valid task_type in the cluster_spec",),
    ),
    Message(
        "task-index-not-valid",
        ("exceeds the maximum id of", "was not defined in job", "Invalid device filter: /job:"),
        "An index that is not in the job",
        "Indices count from 0, in each job for itself; with a chief, too, the workers start at 0. An index below 0 "
        "passes TensorFlow's check and ends as a wrong device filter.",
        "Count from 0; `tfdistedu doctor --no-probe` shows the place.",
    ),
    Message(
        "address-not-valid",
        ("as a host-port pair", "Could not parse port for local server"),
        "An address that is not host:port",
        "A scheme such as http://, or no port.",
        'Write "host:port"; `tfdistedu doctor --no-probe` shows the place.',
    ),
    Message(
        "destinations-empty",
        ("destinations can not be empty",),
        "An all-reduce of a value that is on no replica's device",
        "`replica_context.all_reduce` got a tensor that came in from outside or straight from the dataset, and cannot "
        "tell where it lives.",
        "Wrap it in `tf.identity` inside the replica's function.",
    ),
    Message(
        "metric-outside-run",
        ("SyncOnReadVariable does not support `assign_add` in cross-replica context",),
        "A metric is updated outside `strategy.run`",
        "A metric keeps one value a replica; outside of `run` there is no replica whose value it could be.",
        "Call `update_state` inside the function that `strategy.run` runs, and read `result()` outside.",
    ),
    Message(
        "nccl-on-cpu",
        ("No OpKernel was registered to support Op 'NcclAllReduce'",),
        "NCCL without GPUs",
        "`NcclAllReduce` has kernels for GPUs alone, and says so in the first step only.",
        "Leave `cross_device_ops` out, or use `ReductionToOneDevice`.",
    ),
    Message(
        "collectives-aborted",
        ("Collective ops is aborted by", "The error could be from a previous operation"),
        "A collective failed earlier",
        "After one collective has failed, all later ones fail with the same words, in every task, until the processes "
        "end. The first error in time is the one to read, and it may stand in another task's log.",
        "Find the earliest error over all logs; then start all tasks again.",
        is_echo=True,
    ),
)
