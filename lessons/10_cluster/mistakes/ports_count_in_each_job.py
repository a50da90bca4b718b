"""Ports are counted in each job, as indices are."""

import json

ID = "ports_count_in_each_job"
EXERCISE = "tf_configs"
BELIEVES = "Ports are counted in each job, as indices are."
TRUE = "A port belongs to the machine: all of its tasks count, whatever their jobs are."
QUESTION = "A worker and a parameter server run on b. How many ports does b need?"
CAUGHT_BY = "test_parameter_servers_come_last_and_share_machines"
SEEN = "ours"


def tf_configs(hosts, n_ps=0, chief=False, evaluator=False):
    jobs = ["chief"] * chief + ["worker"] * (len(hosts) - chief - n_ps) + ["ps"] * n_ps
    cluster, seen = {}, []
    for job, host in zip(jobs, hosts, strict=True):
        cluster.setdefault(job, []).append(f"{host}:{2222 + seen.count((job, host))}")
        seen.append((job, host))
    tasks = [(job, i) for job, addresses in cluster.items() for i in range(len(addresses))]
    tasks += [("evaluator", 0)] * evaluator
    return {f"{job}:{i}": json.dumps({"cluster": cluster, "task": {"type": job, "index": i}}) for job, i in tasks}


def twin(hosts, n_ps=0, chief=False, evaluator=False):
    n_workers = len(hosts) - n_ps - chief
    parts = {"chief": hosts[:chief], "worker": hosts[chief : chief + n_workers], "ps": hosts[chief + n_workers :]}
    cluster = {}
    for job, part in parts.items():
        if part:
            cluster[job] = [f"{host}:{2222 + part[:place].count(host)}" for place, host in enumerate(part)]
    texts = {}
    for job, part in [*cluster.items(), *([("evaluator", [0])] if evaluator else [])]:
        for index in range(len(part)):
            texts[f"{job}:{index}"] = json.dumps({"task": {"index": index, "type": job}, "cluster": cluster})
    return texts
