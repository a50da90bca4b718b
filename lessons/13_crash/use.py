"""Your training at work: two real processes add up their gradients, one of them is killed, and the job starts again.

The disk is a real one: files, flushed and renamed. Both ranks run your function; rank 0's files are kept.
"""

import tempfile
from pathlib import Path

from tfdistedu.cluster.local import LocalCluster
from tfdistedu.course.subject import load_module
from tfdistedu.links import new_address, new_token

NEEDS = ["train"]
N_BATCHES, EPOCHS, DEADLINE = 6, 3, 60.0
KILLED_IN = (4, 6, 5)  # steps of the first, the second and the third run


def use(mine, say):
    """Train undisturbed, and with three crashes; compare bits."""
    job = load_module(Path(__file__).parent / "job.py")
    say(f"Two ranks train {EPOCHS} epochs of {N_BATCHES} batches with your function; rank 1 is killed three times.")
    with tempfile.TemporaryDirectory() as folder:
        undisturbed, _ = run(job, mine.train, f"{folder}/undisturbed", None)
        lost, starts = None, 0
        for killed_in in (*KILLED_IN, None):
            lost, error = run(job, mine.train, f"{folder}/killed", killed_in)
            starts += 1
            if error:
                say(f"start {starts}: rank 0 says {error}", "  ")
        left = sorted(path.name for path in Path(folder, "killed").iterdir())
    say(f"start {starts}: weights {lost}", "  ")
    say(f"undisturbed: weights {undisturbed}", "  ")
    say(f"left on the disk: {', '.join(left)}", "  ")
    return 0 if lost is not None and lost == undisturbed else 1


def run(job, train, folder, killed_in):
    """Run the job once; return rank 0's weights, or what it said when rank 1 was killed."""
    with LocalCluster(workers=2, deadline=DEADLINE, echo=False) as cluster:
        arguments = (train, folder, N_BATCHES, EPOCHS, killed_in, new_address(), new_token())
        outcomes = cluster.start(job.work, *arguments).outcomes()
    first = outcomes["worker:0"]
    return first.value, first.error.split(".")[0] if first.error else ""
