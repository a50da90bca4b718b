"""The index numbers the processes of the whole cluster."""

import json

ID = "counts_all_tasks"
EXERCISE = "tf_configs"
BELIEVES = "The index numbers the processes of the whole cluster."
TRUE = "Each job counts for itself: chief:0, worker:0, worker:1, ps:0."
QUESTION = "The cluster has two lists. At which place of its own list does the first parameter server stand?"
CAUGHT_BY = "test_a_chief_is_not_counted_among_the_workers"
SEEN = "ours"


def tf_configs(hosts, n_ps=0, chief=False, evaluator=False):
    jobs = ["chief"] * chief + ["worker"] * (len(hosts) - chief - n_ps) + ["ps"] * n_ps
    cluster = {}
    for place, (job, host) in enumerate(zip(jobs, hosts, strict=True)):
        cluster.setdefault(job, []).append(f"{host}:{2222 + hosts[:place].count(host)}")

    tasks = [(job, i, place) for job, part in cluster.items() for i, place in enumerate(part)]
    numbers = {f"{job}:{i}": number for number, (job, i, _) in enumerate(tasks)} | {"evaluator:0": 0}
    names = [f"{job}:{i}" for job, i, _ in tasks] + ["evaluator:0"] * evaluator
    return {
        name: json.dumps({"cluster": cluster, "task": {"type": name.split(":")[0], "index": numbers[name]}})
        for name in names
    }


def twin(hosts, n_ps=0, chief=False, evaluator=False):
    n_workers = len(hosts) - n_ps - chief
    used, addresses = {}, []
    for host in hosts:
        used[host] = used.get(host, 2221) + 1
        addresses.append(f"{host}:{used[host]}")
    ends = [0, int(chief), chief + n_workers, len(hosts)]
    cluster = {job: addresses[ends[k] : ends[k + 1]] for k, job in enumerate(["chief", "worker", "ps"])}
    cluster = {job: part for job, part in cluster.items() if part}

    texts, number = {}, 0
    for job, part in cluster.items():
        for index in range(len(part)):
            texts[f"{job}:{index}"] = json.dumps({"task": {"index": number, "type": job}, "cluster": cluster})
            number += 1
    if evaluator:
        texts["evaluator:0"] = json.dumps({"task": {"index": 0, "type": "evaluator"}, "cluster": cluster})
    return texts
