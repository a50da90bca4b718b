"""Is this TF_CONFIG right, and if not, what is wrong, where, and how is it mended?

Each process of a cluster reads who there is, and which of them it is, from one environment variable. TensorFlow hardly
looks at it: an index of -1, `http://` before an address, an evaluator among the servers all pass, and the job hangs
later without a word. Here the whole text is checked first, and each thing that is wrong is a *finding*: a stable code,
the place in the JSON, the reason, the remedy.

    text --reading--> JSON --checks (addresses, roles)--> ClusterConfig + findings

    {"cluster": {"worker": ["a:2222", "b:2222"]},   who there is: jobs, and an address for each task
     "task": {"type": "worker", "index": 1}}        which of them this process is: b

Cost: microseconds a task; no TensorFlow, no network. Left out: whether the hosts exist and answer (that is the
doctor's part), GPUs, and the keys that other programs put beside `cluster` and `task`, which are kept as they are.

Read `model` (the type), `findings` (what a finding is), then `reading`, `addresses` and `checks`.
"""

from tfdistedu.cluster.config.build import build
from tfdistedu.cluster.config.checks import parse
from tfdistedu.cluster.config.findings import Finding, Kind, Parsed
from tfdistedu.cluster.config.model import ClusterConfig, Task

__all__ = ["ClusterConfig", "Finding", "Kind", "Parsed", "Task", "build", "parse"]
