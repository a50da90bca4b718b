"""The evaluator is in the cluster like everybody else."""

import json

ID = "evaluator_in_the_cluster"
EXERCISE = "tf_configs"
BELIEVES = "The evaluator is in the cluster like everybody else."
TRUE = "The cluster lists who listens; the evaluator runs no server."
QUESTION = "Who would wait for whom if the coordinator dialled the evaluator?"
CAUGHT_BY = "test_an_evaluator_is_told_of_the_cluster_and_is_not_in_it"
SEEN = "https://github.com/tensorflow/tensorflow/issues/46169"


def tf_configs(hosts, n_ps=0, chief=False, evaluator=False):
    jobs = ["chief"] * chief + ["worker"] * (len(hosts) - chief - n_ps) + ["ps"] * n_ps
    cluster = {}
    for place, (job, host) in enumerate(zip(jobs, hosts, strict=True)):
        cluster.setdefault(job, []).append(f"{host}:{2222 + hosts[:place].count(host)}")

    if evaluator:
        cluster["evaluator"] = [f"{hosts[0]}:{2222 + hosts.count(hosts[0])}"]
    tasks = [(job, i) for job, addresses in cluster.items() for i in range(len(addresses))]
    return {f"{job}:{i}": json.dumps({"cluster": cluster, "task": {"type": job, "index": i}}) for job, i in tasks}


def twin(hosts, n_ps=0, chief=False, evaluator=False):
    n_workers = len(hosts) - n_ps - chief
    used, addresses = {}, []
    for host in hosts:
        used[host] = used.get(host, 2221) + 1
        addresses.append(f"{host}:{used[host]}")
    ends = [0, int(chief), chief + n_workers, len(hosts)]
    cluster = {job: addresses[ends[k] : ends[k + 1]] for k, job in enumerate(["chief", "worker", "ps"])}
    cluster = {job: part for job, part in cluster.items() if part}

    first = hosts[0]
    cluster |= {"evaluator": [f"{first}:{used[first] + 1}"]} if evaluator else {}
    texts = {}
    for job, part in cluster.items():
        for index in range(len(part)):
            texts[f"{job}:{index}"] = json.dumps({"task": {"index": index, "type": job}, "cluster": cluster})
    return texts
