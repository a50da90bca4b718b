"""Kill the demo at random moments, and count what is left of it.

    python -m tests.faults.kill_demo 10        by hand; the tests do two

SIGKILL cannot be caught: whatever the demo started, made or opened has to end by itself.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time

from tests.faults.rounds import Launcher, eventually_empty

DEMO = "import sys; sys.argv = ['tfdistedu', 'demo']; from tfdistedu.cli import main; main()"
LONGEST = 30.0  # seconds; on two idle cores the demo takes as long


def kill_demo(n: int, seed: int, folder: str, say=lambda text: None, longest: float = LONGEST) -> list[float]:
    """Kill it n times; return the moments. Raises if anything is left."""
    draw = random.Random(seed)
    moments = []
    for number in range(n):
        launcher = Launcher(folder, code=DEMO)
        moment = draw.uniform(longest * number / n, longest * (number + 1) / n)  # spread over its whole life
        end = time.monotonic() + moment
        while launcher.process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        processes = len(launcher.left().get("processes", ()))
        launcher.process.kill()
        launcher.process.wait(20)
        launcher.close()
        eventually_empty(launcher, 10.0)
        say(f"killed after {moment:.1f} s, {processes} processes: nothing is left")
        moments.append(moment)
    return moments


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
        kill_demo(int(sys.argv[1]), seed, made, lambda text: print(text, flush=True))
