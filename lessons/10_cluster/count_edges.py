"""Count the connections of a cluster: python count_edges.py WORKERS PS [chief] [evaluator] [--all]

Nothing is started: each config says whom its process dials, and at which address. Then the address of the last task is
replaced by a wrong one, in all texts and in the text of the last worker alone, and what is missing is counted.
"""

import json
import sys
from pathlib import Path

from tfdistedu.cluster.config import build
from tfdistedu.course.subject import load_module

WRONG = "nobody:1"


def texts_of(workers, ps, chief, evaluator):
    """Return every task's text; each task has a machine of its own."""
    hosts = [f"m{number}" for number in range(workers + ps + chief)]
    return {c.name: c.render() for c in build(workers, ps, chief, evaluator, hosts)}


def edges(texts):
    """Return the connections that the texts ask for: (who dials, whom)."""
    found = []
    for name, text in texts.items():
        config = json.loads(text)
        members = [f"{job}:{i}" for job, addresses in config["cluster"].items() for i in range(len(addresses))]
        found += [(name, other) for other in members if name in members and other != name]
    return found


def with_wrong_address(texts, names):
    """Replace the last task's address in some texts; the process itself still listens at the right one."""
    spoilt = dict(texts)
    for name in names:
        config = json.loads(texts[name])
        list(config["cluster"].values())[-1][-1] = WRONG
        spoilt[name] = json.dumps(config)
    return spoilt


def count(workers, ps, chief=False, evaluator=False):
    """Return what the exercise asks for."""
    missing_edges = load_module(Path(__file__).parent / "sibling.py").missing_edges
    texts = texts_of(workers, ps, chief, evaluator)
    last = f"ps:{ps - 1}" if ps else f"worker:{workers - 1}"
    others = [name for name in texts if name != last]
    return {
        "processes": len(texts),
        "addresses_in_each_text": sum(map(len, json.loads(texts["worker:0"])["cluster"].values())),
        "connections": len(edges(texts)),
        "cut_in_all_other_texts": len(missing_edges(with_wrong_address(texts, others))),
        "cut_in_one_text": len(missing_edges(with_wrong_address(texts, [f"worker:{workers - 1}"]))),
    }


def main(words):
    """Print the connections one by one, and then the numbers."""
    workers, ps = int(words[0]), int(words[1])
    texts = texts_of(workers, ps, "chief" in words, "evaluator" in words)
    print("TF_CONFIG for:", ", ".join(texts))
    for name in texts:
        dials = [other for who, other in edges(texts) if who == name]
        print(f"{name} dials {', '.join(dials) or 'nobody: it is no member of the cluster'}")
    for part, number in count(workers, ps, "chief" in words, "evaluator" in words).items():
        print(f"{part}: {number}")


if __name__ == "__main__":
    main(sys.argv[1:])
