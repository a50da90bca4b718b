"""One port for all: the machines are different."""

import json

ID = "one_port"
EXERCISE = "tf_configs"
BELIEVES = "One port for all: the machines are different."
TRUE = "A machine can run several tasks, and each needs a port of its own."
QUESTION = "Three workers on localhost. Which two of them cannot start?"
CAUGHT_BY = "test_workers_of_one_machine_have_ports_of_their_own"
SEEN = "ours"


def tf_configs(hosts, n_ps=0, chief=False, evaluator=False):
    jobs = ["chief"] * chief + ["worker"] * (len(hosts) - chief - n_ps) + ["ps"] * n_ps
    cluster = {}
    for job, host in zip(jobs, hosts, strict=True):
        cluster.setdefault(job, []).append(f"{host}:2222")
    tasks = [(job, i) for job, addresses in cluster.items() for i in range(len(addresses))]
    tasks += [("evaluator", 0)] * evaluator
    return {f"{job}:{i}": json.dumps({"cluster": cluster, "task": {"type": job, "index": i}}) for job, i in tasks}


def twin(hosts, n_ps=0, chief=False, evaluator=False):
    n_workers = len(hosts) - n_ps - chief
    addresses = [host + ":2222" for host in hosts]
    ends = [0, int(chief), chief + n_workers, len(hosts)]
    cluster = {job: addresses[ends[k] : ends[k + 1]] for k, job in enumerate(["chief", "worker", "ps"])}
    cluster = {job: part for job, part in cluster.items() if part}

    texts = {}
    for job, part in [*cluster.items(), *([("evaluator", [0])] if evaluator else [])]:
        for index in range(len(part)):
            texts[f"{job}:{index}"] = json.dumps({"task": {"index": index, "type": job}, "cluster": cluster})
    return texts
