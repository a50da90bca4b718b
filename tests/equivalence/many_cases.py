"""Check the promise on thousands of drawn cases: `python -m tests.equivalence.many_cases --cases 2000`.

Each chunk runs in a fresh process, for a case leaves some 4 MB behind in TensorFlow. Prints how many cases held and
the share of each label; ends with status 1 when a case failed or a label is rarer than 5 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

REQUIRED = ("ragged", "empty replica", "eager", "clipping that binds", "momentum", "four replicas")


def run_chunk(seed: int, cases: int) -> dict[str, int]:
    """Check some drawn cases in this process, and count their labels."""
    import keras
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as with_seed

    from tests.equivalence.cases import cases as drawn
    from tests.equivalence.test_one_device import check
    from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus

    virtual_cpus(4)
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    strategies = {1: tf.distribute.get_strategy(), **{n: mirrored_strategy(n) for n in (2, 3, 4)}}
    count: Counter[str] = Counter()

    @with_seed(seed)
    @given(drawn())
    @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def run(case):
        count.update(["cases", *check(case, strategies[case.n_replicas])])

    run()
    return dict(count)


def main() -> int:
    """Run the chunks, two at a time, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--chunk", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one-chunk", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one_chunk:
        print(json.dumps(run_chunk(asked.seed, asked.cases)))
        return 0

    def start(seed: int) -> dict[str, int]:
        words = ["--one-chunk", "--seed", str(seed), "--cases", str(asked.chunk)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.equivalence.many_cases", *words], capture_output=True, text=True, timeout=1800
        )
        if done.returncode:
            print(f"chunk {seed} failed:\n{done.stdout}\n{done.stderr}", file=sys.stderr)
            return {"failed chunks": 1}
        print(f"chunk {seed} done", file=sys.stderr, flush=True)
        return json.loads(done.stdout.splitlines()[-1])

    total: Counter[str] = Counter()
    with ThreadPoolExecutor(asked.processes) as pool:
        for count in pool.map(start, range(asked.seed, asked.seed + -(-asked.cases // asked.chunk))):
            total.update(count)
    for label, number in total.most_common():
        print(f"{label:20} {number:6}  {100 * number / max(total['cases'], 1):5.1f} %")
    rare = [label for label in REQUIRED if total[label] < 0.05 * total["cases"]]
    if rare:
        print(f"rarer than 5 %: {', '.join(rare)}")
    return 1 if rare or total["failed chunks"] or total["cases"] < asked.cases else 0


if __name__ == "__main__":
    sys.exit(main())
