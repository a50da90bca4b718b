"""A cluster, started and stopped many times, a third of them by SIGKILL: what is left is counted from outside.

    python -m tests.faults.rounds 200        by hand; the tests do 20

A launcher, a process of its own, starts a cluster of two workers, traces a function on each (AutoGraph leaves a file in
the temporary folder for it) and lets them meet in an all-reduce. Then the round ends: as it should, or by SIGKILL of a
random task, of the server, or of the launcher at a random moment. Everything that belongs to a launcher is known by a
variable in its environment, which its processes inherit.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.fresh_process import ROOT

MARK = "TFDISTEDU_TEST_MARK"


def reduce_once() -> float:
    import tensorflow as tf

    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=10.0)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    @tf.function
    def step(one):
        if one > 0:  # for AutoGraph
            one = one + 1.0
        return tf.distribute.get_replica_context().all_reduce("SUM", one)

    return float(strategy.run(step, args=(tf.constant(1.0),)))


def launcher() -> None:
    """Do what is asked on stdin, a line each, and answer in JSON."""
    from tfdistedu.cluster import LocalCluster, TaskFailed
    from tfdistedu.cluster.forks import _Kept

    for line in sys.stdin:
        how = line.strip()
        with LocalCluster(2, echo=False, deadline=30) as cluster:
            ports = [int(address.split(":")[1]) for address in cluster.addresses["worker"]]
            print(json.dumps({"ports": ports}), flush=True)
            if how == "ends":
                assert cluster.run(reduce_once) == {"worker:0": 4.0, "worker:1": 4.0}
            else:
                running = cluster.start(reduce_once)
                time.sleep(float(how.split()[1]))
                if how.startswith("server"):
                    os.kill(_Kept.server.pid, signal.SIGKILL)
                else:
                    cluster.kill(how.split()[2])
                with contextlib.suppress(TaskFailed):
                    running.results()
        print(json.dumps({"done": how}), flush=True)


def marked(mark: str) -> dict[int, str]:
    """Return the processes that inherited a mark, zombies apart: each one's name by its number."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def listening() -> set[int]:
    """Return the ports of this machine on which somebody listens."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return {int(line[1].rsplit(":", 1)[1], 16) for line in lines if line[3] == "0A"}


def segments() -> set[str]:
    """Return the segments of shared memory that have a name; a folder is none (benchmarks keep their sockets there)."""
    return {entry.name for entry in os.scandir("/dev/shm") if not entry.is_dir()}


@dataclass
class Launcher:
    """A launcher under a mark, with a temporary folder of its own."""

    folder: str
    code: str = "from tests.faults.rounds import launcher; launcher()"
    path: str = ""
    mark: str = field(default_factory=lambda: os.urandom(8).hex())
    ports: set[int] = field(default_factory=set)

    def __post_init__(self):
        self.shared = segments()
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.code],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{self.path}{os.pathsep}{ROOT}", MARK: self.mark, "TMPDIR": self.folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if "rounds" in self.code else subprocess.DEVNULL,
            text=True,
        )

    def ask(self, how: str) -> None:
        self.process.stdin.write(how + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        assert line, f"the launcher ended with status {self.process.wait(10)}"
        answer = json.loads(line)
        self.ports |= set(answer.get("ports", ()))
        return answer

    def end(self) -> None:
        """Close its stdin: it ends as a program ends."""
        self.process.stdin.close()
        assert self.process.wait(20) == 0
        self.process.stdout.close()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()

    def left(self) -> dict[str, object]:
        """Tell what belongs to it and is there: empty when nothing is."""
        entries = {
            "processes": marked(self.mark),
            "ports": self.ports & listening(),
            # os.walk bears a folder that is being removed while one looks
            "files": [os.path.join(at, name) for at, below, here in os.walk(self.folder) for name in below + here],
            "segments": sorted(segments() - self.shared),
        }
        return {name: what for name, what in entries.items() if what}

    def check_between(self) -> None:
        """Between two rounds there is the launcher, at most one server, and the server's empty folder."""
        left = self.left()
        others = [name for name in left["processes"].values() if "tests.faults.rounds" not in name]
        assert len(others) <= 1, left
        assert all("tfdistedu.cluster.server" in name for name in others), left
        assert len(left.pop("files", ())) <= 1, left
        assert set(left) == {"processes"}, left


def eventually_empty(launcher: Launcher, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while (left := launcher.left()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left, left


def rounds(n: int, seed: int, folder: str, say=lambda text: None) -> dict[str, int]:
    """Do n rounds, a third of them broken, and check after each that nothing is left of it."""
    draw = random.Random(seed)
    counts = dict.fromkeys(("ends", "task", "server", "launcher"), 0)
    one = None
    for number in range(n):
        kind = "ends" if number % 3 else ("task", "server", "launcher")[number // 3 % 3]
        if one is None:
            one = Launcher(tempfile.mkdtemp(dir=folder))
        counts[kind] += 1
        moment = draw.uniform(0, 0.6)
        one.ask({"task": f"task {moment} worker:{draw.randrange(2)}", "server": f"server {moment}"}.get(kind, "ends"))
        if kind == "launcher":
            # At a random moment: also while the server imports, and while tasks are being forked.
            if draw.random() < 0.7:
                one.answer()
            time.sleep(moment)
            one.process.kill()
            one.process.wait()
            eventually_empty(one)
            one.close()
            one = None
        else:
            one.answer()
            assert "done" in one.answer()
            one.check_between()
        say(f"{number + 1} {kind}")
    if one is not None:
        one.end()
        eventually_empty(one)
    return counts


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(rounds(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, made, lambda text: print(text)))
