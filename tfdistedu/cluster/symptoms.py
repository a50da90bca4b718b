"""What can the doctor find that does not stand in the text of TF_CONFIG?

A symptom is about this machine, this process, or the way to another task; it has a code like every finding. Left out:
examples as text, for each of these needs a machine in that state; tests make them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Symptom:
    """A kind of finding about a machine.

    Attributes:
        code: Its name, such as "port-taken".
        severity: "error" or "warning".
        title: What is wrong, in a few words.
        why: What follows from it.

    """

    code: str
    severity: str
    title: str
    why: str


SYMPTOMS: tuple[Symptom, ...] = (
    Symptom("python-version", "error", "Another Python", "TensorFlow 2.21 is made for Python 3.11, 3.12 and 3.13."),
    Symptom("tensorflow-missing", "error", "TensorFlow is not installed", "Nothing can train."),
    Symptom(
        "tensorflow-version",
        "warning",
        "Another TensorFlow",
        "All that is said here about errors and strategies was seen with 2.21.",
    ),
    Symptom("keras-missing", "error", "Keras is not installed", "TensorFlow asks for it at its first use of a model."),
    Symptom("keras-version", "warning", "Another Keras", "What each strategy can do was seen with Keras 3.15."),
    Symptom(
        "tf-keras-missing",
        "error",
        "TF_USE_LEGACY_KERAS without tf_keras",
        "The variable asks for Keras 2, and the package that holds it is not installed.",
    ),
    Symptom(
        "keras-fit-multi-worker",
        "warning",
        "Keras 3 `fit` does not work on several workers",
        "As shipped it fails in two places under MultiWorkerMirroredStrategy. A custom loop and tf_keras work.",
    ),
    Symptom(
        "keras-fit-ps",
        "warning",
        "Keras 3 `fit` does not work with parameter servers",
        "A custom loop with a ClusterCoordinator works, and so does tf_keras.",
    ),
    Symptom(
        "config-not-set",
        "warning",
        "No TF_CONFIG for a strategy that reads it",
        "The strategy trains on this machine alone, and says nothing.",
    ),
    Symptom(
        "config-not-used",
        "warning",
        "TF_CONFIG is set, and the strategy is for one machine",
        "MirroredStrategy does not read it: each worker trains alone, on the same data.",
    ),
    Symptom(
        "tensorflow-awake",
        "error",
        "TensorFlow is awake in this process",
        "MultiWorkerMirroredStrategy must be built before the first operation.",
    ),
    Symptom(
        "proxy-set",
        "warning",
        "A proxy stands between the tasks",
        "gRPC obeys grpc_proxy, https_proxy and http_proxy, also for localhost; a proxy does not know your cluster.",
    ),
    Symptom(
        "memory-short",
        "warning",
        "Little memory for the tasks of this machine",
        "A process that has imported TensorFlow takes about 600 MB.",
    ),
    Symptom("host-not-found", "error", "A host name that leads nowhere", "The name is not known to this machine."),
    Symptom(
        "host-not-this-machine",
        "warning",
        "This task's address belongs to another machine",
        "TensorFlow will listen here, and the others dial there. It is right behind a service address or a router.",
    ),
    Symptom("port-taken", "error", "This task's port is taken", "TensorFlow stops with `Could not start gRPC server`."),
    Symptom(
        "task-running",
        "warning",
        "This very task runs already",
        "A process with the same TF_CONFIG listens at its port; a second one cannot.",
    ),
    Symptom(
        "task-not-answering",
        "error",
        "A task does not answer",
        "TensorFlow waits for it, silently. It has not started, or something lies between.",
    ),
    Symptom(
        "task-silent",
        "error",
        "A task takes the call and says nothing",
        "It is paused, or hangs before TensorFlow's server has started to serve.",
    ),
    Symptom(
        "not-tensorflow",
        "error",
        "Something else answers there",
        "It does not speak gRPC: another program has the port.",
    ),
)
SYMPTOM = {symptom.code: symptom for symptom in SYMPTOMS}
