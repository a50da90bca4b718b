"""A process needs its own address only; the others have theirs."""

import json

ID = "only_itself"
EXERCISE = "tf_configs"
BELIEVES = "A process needs its own address only; the others have theirs."
TRUE = "It has to dial all others. A text that names one task makes a job that trains alone, without an error."
QUESTION = "Where would worker:0 learn the address of worker:1?"
CAUGHT_BY = "test_two_workers_on_two_machines"
SEEN = "ours"


def tf_configs(hosts, n_ps=0, chief=False, evaluator=False):
    jobs = ["chief"] * chief + ["worker"] * (len(hosts) - chief - n_ps) + ["ps"] * n_ps
    cluster = {}
    for place, (job, host) in enumerate(zip(jobs, hosts, strict=True)):
        cluster.setdefault(job, []).append(f"{host}:{2222 + hosts[:place].count(host)}")

    texts = {}
    for job, addresses in cluster.items():
        for i, address in enumerate(addresses):
            mine = {"cluster": {job: {str(i): address}}, "task": {"type": job, "index": i}}
            texts[f"{job}:{i}"] = json.dumps(mine)
    if evaluator:
        texts["evaluator:0"] = json.dumps({"cluster": cluster, "task": {"type": "evaluator", "index": 0}})
    return texts


def twin(hosts, n_ps=0, chief=False, evaluator=False):
    n_workers = len(hosts) - n_ps - chief
    used, addresses = {}, []
    for host in hosts:
        used[host] = used.get(host, 2221) + 1
        addresses.append(f"{host}:{used[host]}")
    ends = [0, int(chief), chief + n_workers, len(hosts)]
    cluster = {job: addresses[ends[k] : ends[k + 1]] for k, job in enumerate(["chief", "worker", "ps"])}
    cluster = {job: part for job, part in cluster.items() if part}

    texts = {}
    for job, part in cluster.items():
        for index in range(len(part)):
            alone = {job: {index: part[index]}}
            texts[f"{job}:{index}"] = json.dumps({"task": {"index": index, "type": job}, "cluster": alone})
    if evaluator:
        texts |= {"evaluator:0": json.dumps({"task": {"index": 0, "type": "evaluator"}, "cluster": cluster})}
    return texts
