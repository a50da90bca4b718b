"""The chief is the first worker, so the workers after it begin at 1."""

import json

ID = "chief_is_worker_0"
EXERCISE = "tf_configs"
BELIEVES = "The chief is the first worker, so the workers after it begin at 1."
TRUE = "With a chief, too, the workers start at 0."
QUESTION = "At which place of the workers' list stands the address of the first worker?"
CAUGHT_BY = "test_a_chief_is_not_counted_among_the_workers"
SEEN = "ours"


def tf_configs(hosts, n_ps=0, chief=False, evaluator=False):
    jobs = ["chief"] * chief + ["worker"] * (len(hosts) - chief - n_ps) + ["ps"] * n_ps
    cluster = {}
    for place, (job, host) in enumerate(zip(jobs, hosts, strict=True)):
        cluster.setdefault(job, []).append(f"{host}:{2222 + hosts[:place].count(host)}")

    tasks = [(job, i) for job, addresses in cluster.items() for i in range(len(addresses))]
    tasks += [("evaluator", 0)] * evaluator
    shift = {"worker": int(chief)}
    return {
        f"{job}:{i}": json.dumps({"cluster": cluster, "task": {"type": job, "index": i + shift.get(job, 0)}})
        for job, i in tasks
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

    texts = {}
    for job, part in [*cluster.items(), *([("evaluator", [0])] if evaluator else [])]:
        for index in range(len(part)):
            mine = index + 1 if job == "worker" and chief else index
            texts[f"{job}:{index}"] = json.dumps({"task": {"index": mine, "type": job}, "cluster": cluster})
    return texts
