"""Watch a job hang: python watch_hang.py STEPS RANK:STEP,STEP ... [--ranks N] [--real]

Each RANK:STEP,STEP says after which steps that rank evaluates. Without --real all ranks live in this process; with it,
each is a process with TensorFlow. Printed are the meetings, one by one, and who waits for whom in the end; with --real,
where each worker stands.
"""

import sys
from pathlib import Path

from tfdistedu.course.subject import load_module
from tfdistedu.links.meeting import Hang, run_group

FOLDER = Path(__file__).parent
PAGE = {"steps": 3, "evaluates": ((1,), (), ())}
EXERCISE = {"steps": 5, "evaluates": ((1,), (), (0, 2))}


def play(steps, evaluates):
    """Run the job in this process; return each rank's calls and logs, and the hang (or None)."""
    job, calls, logs = load_module(FOLDER / "job.py").job, [], [[] for _ in evaluates]

    def program(group, mine):
        job(group, mine, steps, logs[group.rank].append)

    try:
        # TensorFlow matches calls by their order alone.
        run_group(program, evaluates, by_name=False, calls=calls)
    except Hang as hang:
        return calls, logs, hang
    return calls, logs, None


def meetings(calls):
    """Return who met under which names: one line a call."""
    lines = []
    for number in range(max(map(len, calls))):
        came = [made[number].name if len(made) > number else "(nobody)" for made in calls]
        lines.append(f"call {number}: " + ", ".join(f"worker:{rank} {name}" for rank, name in enumerate(came)))
    return lines


def numbers(steps, evaluates):
    """Return what the exercise asks for."""
    calls, _, hang = play(steps, evaluates)
    ended = min(map(len, calls))
    (missing,) = {rank for ranks in hang.waits_for.values() for rank in ranks}
    return {
        "workers_that_wait": len(hang.waits_for),
        "waits_for_worker": missing,
        "all_reduces_that_ended": ended,
        "first_wrong_meeting": next(n for n in range(ended) if len({made[n].name for made in calls}) > 1),
    }


def real(steps, evaluates):
    """Run the job on real workers until it hangs; return their logs, and where those that wait stand."""
    from tfdistedu.cluster.local import LocalCluster

    module, job = load_module(FOLDER / "real.py"), load_module(FOLDER / "job.py").job
    _, logs, _ = play(steps, evaluates)
    with LocalCluster(workers=len(evaluates), echo=False) as cluster:
        expected = {task: logs[rank] for rank, task in enumerate(cluster.tasks)}
        running = cluster.start(module.work, job, evaluates, steps)
        stacks = module.hung(cluster, running, expected)
    return expected, {task: module.own_frames(text, FOLDER / "job.py") for task, text in stacks.items()}


def report(logs, stacks):
    """Write logs and stacks as one reads them."""
    lines = []
    for task, logged in logs.items():
        lines.append(f"{task} wrote last: {logged[-1]}")
        where = stacks.get(task)
        lines += ["  " + line for line in where] if where else ["  (its program has ended; the process is idle)"]
    return "\n".join(lines) + "\n"


def main(words):
    """Watch one job."""
    ranks = int(words[words.index("--ranks") + 1]) if "--ranks" in words else 3
    given = dict(word.split(":") for word in words[1:] if ":" in word)
    evaluates = tuple(
        tuple(map(int, given.get(str(rank), "").split(",") if str(rank) in given else ())) for rank in range(ranks)
    )
    if "--real" in words:
        print(report(*real(int(words[0]), evaluates)), end="")
        return
    calls, _, hang = play(int(words[0]), evaluates)
    print("\n".join(meetings(calls)))
    for rank, ranks in hang.waits_for.items() if hang else ():
        print(f"worker:{rank} waits for", ", ".join(f"worker:{other}" for other in ranks))


if __name__ == "__main__":
    main(sys.argv[1:])
