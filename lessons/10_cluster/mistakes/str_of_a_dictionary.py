"""A dictionary printed is the text."""

ID = "str_of_a_dictionary"
EXERCISE = "tf_configs"
BELIEVES = "A dictionary printed is the text."
TRUE = "str() writes Python, with single quotes. TF_CONFIG is JSON."
QUESTION = "Which quotes does JSON have?"
CAUGHT_BY = "test_two_workers_on_two_machines"
SEEN = "ours"


def tf_configs(hosts, n_ps=0, chief=False, evaluator=False):
    jobs = ["chief"] * chief + ["worker"] * (len(hosts) - chief - n_ps) + ["ps"] * n_ps
    cluster = {}
    for place, (job, host) in enumerate(zip(jobs, hosts, strict=True)):
        cluster.setdefault(job, []).append(f"{host}:{2222 + hosts[:place].count(host)}")
    tasks = [(job, i) for job, addresses in cluster.items() for i in range(len(addresses))]
    tasks += [("evaluator", 0)] * evaluator
    return {f"{job}:{i}": str({"cluster": cluster, "task": {"type": job, "index": i}}) for job, i in tasks}


def twin(hosts, n_ps=0, chief=False, evaluator=False):
    n_workers = len(hosts) - n_ps - chief
    used, addresses = {}, []
    for host in hosts:
        used[host] = used.get(host, 2221) + 1
        addresses.append(f"{host}:{used[host]}")
    parts = {
        "chief": addresses[:chief],
        "worker": addresses[chief : chief + n_workers],
        "ps": addresses[chief + n_workers :],
    }
    cluster = {job: part for job, part in parts.items() if part}
    texts = {}
    for job, part in [*cluster.items(), *([("evaluator", [0])] if evaluator else [])]:
        for index in range(len(part)):
            texts[f"{job}:{index}"] = repr({"task": {"index": index, "type": job}, "cluster": cluster})
    return texts
