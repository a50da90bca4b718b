"""Ranks that die, stop, leave, call something else, and strangers: an error on all sides, in time, that names them.

Threads would not do here: a thread cannot be killed, and its sockets do not close when it ends.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import resource
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.ranks import run_threads, values
from tfdistedu.errors import BadInput, DeadlineExceeded, MachineCannot, TfdisteduError
from tfdistedu.links import Mismatch, PeerFailed, PeerGone, join, mesh, new_address, new_token

LINKS = ("shared_memory", "tcp")


def reduces_until_it_fails(address, token, link, deadline):
    """Call all-reduce again and again; return the error, and how long the last call took."""
    import numpy as np

    from tfdistedu.links import join

    rank = int(os.environ["TFDISTEDU_TASK"].rpartition(":")[2])
    began = time.monotonic()
    try:
        with join(rank, 3, address, token, link, deadline=deadline) as comm:
            while True:
                began = time.monotonic()
                comm.all_reduce(np.ones(100_000, np.float32))
                Path(f"{os.environ['TFDISTEDU_TEST_FOLDER']}/{rank}").touch()
    except Exception as error:
        return type(error).__name__, str(error), time.monotonic() - began


@pytest.fixture
def three(local_cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("TFDISTEDU_TEST_FOLDER", str(tmp_path))
    cluster = local_cluster(workers=3, deadline=60)

    def start(link, deadline=20.0):
        call = cluster.start(reduces_until_it_fails, new_address(), new_token(), link, deadline)
        end = time.monotonic() + 30
        while len(list(tmp_path.iterdir())) < 3:
            assert time.monotonic() < end, "the ranks did not get going"
            time.sleep(0.01)
        return cluster, call

    return start


@pytest.mark.parametrize("link", LINKS)
def test_a_killed_rank_is_named_within_a_second(three, link):
    cluster, call = three(link)
    cluster.kill("worker:1")
    killed = time.monotonic()
    outcomes = call.outcomes()
    took = time.monotonic() - killed
    for task in ("worker:0", "worker:2"):
        name, text, _ = outcomes[task].value
        assert name == "PeerGone", text
        assert re.search(r"rank 1 (is gone \(its process ended\)|closed its line)", text), text
        assert "all_reduce(sum, float32[100000], direct)" in text
    assert took < 1 + 2  # a second, and what a busy machine adds


@pytest.mark.parametrize("link", LINKS)
def test_a_stopped_rank_ends_the_wait_at_the_deadline(three, link):
    cluster, call = three(link, deadline=1.0)
    cluster.pause("worker:2")
    time.sleep(4)
    cluster.resume("worker:2")  # it finds that the others gave up
    outcomes = call.outcomes()
    texts = {task: outcome.value for task, outcome in outcomes.items()}
    assert {name for name, _, _ in texts.values()} <= {"DeadlineExceeded", "PeerFailed", "PeerGone"}, texts
    assert any(re.search(r"waited 1 s for rank 2", text) for _, text, _ in texts.values()), texts
    for task in ("worker:0", "worker:1"):
        assert texts[task][2] < 4, texts  # they did not wait for its return


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda c: c.barrier(), lambda c: c.all_reduce(np.ones(3))),
        (lambda c: c.all_reduce(np.ones(4)), lambda c: c.all_reduce(np.ones(3))),
        (lambda c: c.all_reduce(np.ones(3), "max"), lambda c: c.all_reduce(np.ones(3))),
        (lambda c: c.all_reduce(np.ones(3, np.int64)), lambda c: c.all_reduce(np.ones(3))),
        (lambda c: c.all_reduce(np.ones(3), algorithm="ring"), lambda c: c.all_reduce(np.ones(3), algorithm="tree")),
        (lambda c: c.broadcast(np.ones(3)), lambda c: c.all_reduce(np.ones(3))),
        (lambda c: c.broadcast(np.ones(3), 0), lambda c: c.broadcast(np.ones(3), 1)),
        (lambda c: c.reduce_scatter(np.ones(3)), lambda c: c.all_gather(np.ones(3))),
        (lambda c: c.all_gather(np.ones((2, 3))), lambda c: c.all_gather(np.ones((2, 4)))),
    ],
    ids=["operation", "size", "reduction", "type", "algorithm", "a root that only sends", "root", "halves", "rest"],
)
def test_calls_that_differ_are_an_error_on_all_sides_that_says_who_called_what(link, one, other):
    results = run_threads(3, lambda comm: (one if comm.rank == 1 else other)(comm), link=link)
    said = {rank: set(re.findall(r"rank (\d): call \d+, ([\w]+)", str(each))) for rank, each in enumerate(results)}
    for rank, error in enumerate(results):
        assert isinstance(error, (Mismatch, PeerFailed)), (rank, error)
        assert {who for who, _ in said[rank]} >= {"1", str(rank)}, error


@pytest.mark.parametrize("link", LINKS)
def test_one_rank_with_one_call_more_is_told(link):
    """R13: `if rank == 0: all_reduce(extra)`, and two collectives in two orders."""
    results = run_threads(
        2, lambda c: [c.all_reduce(np.ones(2)) for _ in range(2 - c.rank)] and c.barrier() if c.rank else
        [c.all_reduce(np.ones(2)) for _ in range(2)], link=link,
    )  # fmt: skip
    assert all(isinstance(each, Mismatch) for each in results), results
    assert "rank 0: call 2, all_reduce" in str(results[1])
    assert "rank 1: call 2, barrier()" in str(results[0])
    a, b = np.ones(2), np.ones(3)
    results = run_threads(2, lambda c: [c.all_reduce(x) for x in ((a, b) if c.rank else (b, a))], link=link)
    assert all(isinstance(each, Mismatch) for each in results), results


@pytest.mark.parametrize("link", LINKS)
def test_a_rank_that_leaves_or_fails_is_told_to_those_who_wait(link):
    results = run_threads(3, lambda c: c.all_reduce(np.ones(2)) if c.rank else None, link=link)
    assert results[0] is None
    assert all(isinstance(each, PeerGone) and "rank 0 left" in str(each) for each in results[1:]), results

    def fails(comm):
        if comm.rank == 2:
            raise ValueError("no more paper")
        return comm.all_reduce(np.ones(2))

    results = run_threads(3, fails, link=link)
    assert isinstance(results[2], ValueError)
    assert all("rank 2 left with ValueError: no more paper" in str(each) for each in results[:2]), results


@pytest.mark.parametrize("link", LINKS)
def test_a_sum_that_does_not_fit_is_an_error_on_all_ranks(link):
    """Only the rank that adds sees it; the others would wait for its chunk."""
    most = np.full(40, np.iinfo(np.int64).max)

    def body(comm):
        comm.all_reduce(most, algorithm="ring")

    results = run_threads(3, body, link=link)
    assert all(isinstance(each, TfdisteduError) for each in results), results
    assert all("int64 cannot hold it" in str(each) for each in results), results


def forks_and_dies(address, token, link):
    """Rank 1 forks a child that lives on, and kills itself; rank 0 returns what it hears, and when."""
    import signal
    import sys

    import numpy as np

    from tfdistedu.errors import TfdisteduError
    from tfdistedu.links import join

    rank = int(os.environ["TFDISTEDU_TASK"].rpartition(":")[2])
    with join(rank, 2, address, token, link, deadline=15) as comm:
        comm.all_reduce(np.ones(3))
        began = time.monotonic()
        if rank == 0:
            try:
                comm.barrier()
            except TfdisteduError as error:
                return type(error).__name__, time.monotonic() - began
        elif os.fork() == 0:
            try:
                comm.barrier()
            except TfdisteduError as error:
                print("child:", error, file=sys.stderr, flush=True)
            time.sleep(20)
            os._exit(0)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    return None


@pytest.mark.parametrize("link", LINKS)
def test_a_killed_rank_is_heard_of_though_a_child_that_it_forked_lives_on(local_cluster, link):
    """The child has copies of all lines; as long as it held them, none would end and the others would wait."""
    cluster = local_cluster(workers=2, deadline=40, echo=False)
    outcomes = cluster.start(forks_and_dies, new_address(), new_token(), link).outcomes()
    name, took = outcomes["worker:0"].value
    assert name == "PeerGone"
    assert took < 5  # seen: 0.5; it would be the deadline, 15
    assert "child: rank 1: this communicator is of no use any more (this process was forked" in cluster.output(
        "worker:1"
    )


def test_what_a_rank_gave_wrongly_is_said_with_its_own_number():
    def body(comm):
        for array in (np.ma.array([1.0], mask=[True]), "text"):
            with pytest.raises(BadInput, match=f"rank {comm.rank} has a"):
                comm.all_reduce(array)
        with pytest.raises(BadInput, match=r"^out is a list, which cannot be written to"):
            comm.broadcast(np.ones(1), out=[1.0])
        with pytest.raises(BadInput, match=r"algorithm=\['ring'\]: give a name"):
            comm.all_reduce(1.0, algorithm=["ring"])
        return float(comm.all_reduce(1.0))  # nothing was sent, so nothing is broken

    assert values(run_threads(2, body)) == [2.0, 2.0]


@pytest.mark.parametrize("link", LINKS)
def test_after_an_error_a_communicator_says_that_it_is_of_no_use(link):
    def body(comm):
        with pytest.raises(Mismatch):
            comm.all_reduce(np.ones(comm.rank + 1))
        with pytest.raises(TfdisteduError, match=r"of no use any more \(Mismatch in call 1\). Join anew"):
            comm.barrier()
        return "said"

    assert values(run_threads(2, body, link=link)) == ["said", "said"]


def test_a_rank_that_does_not_come_is_named():
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"rank 0 waited 0\.3 s for ranks 1, 2 to come to local:"):
        join(0, 3, new_address(), new_token(), deadline=0.3)
    with pytest.raises(DeadlineExceeded, match=r"rank 2 waited 0\.3 s for rank 0 to come to"):
        join(2, 3, new_address(), new_token(), deadline=0.3)
    assert time.monotonic() - began < 5


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


GREETINGS = (
    b"",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\xff" * 9000,
    b'{"token": "guess", "rank": 1}\n',
    b'{"token": "guess", "rank": 1, "channel": "control", "listens": "x:1"}\n',
)


@pytest.mark.parametrize("greeting", GREETINGS)
def test_a_stranger_is_turned_away_and_holds_up_nobody(greeting):
    port, token = free_port(), new_token()
    address = f"127.0.0.1:{port}"
    results = {}

    def rank_main(rank, delay):
        time.sleep(delay)
        with join(rank, 2, address, token, link="tcp", deadline=20) as comm:
            results[rank] = comm.all_reduce(np.full(3, rank + 1.0))

    first = threading.Thread(target=rank_main, args=(0, 0))
    first.start()
    for _ in range(100):
        stranger = socket.socket()
        if stranger.connect_ex(("127.0.0.1", port)) == 0:
            break
        stranger.close()
        time.sleep(0.02)
    stranger.sendall(greeting)
    second = threading.Thread(target=rank_main, args=(1, 0.1))
    second.start()
    began = time.monotonic()
    for thread in (first, second):
        thread.join()
    assert time.monotonic() - began < 5
    stranger.settimeout(5)
    with stranger, contextlib.suppress(ConnectionResetError):  # so it ends when the greeting was not read to its end
        assert stranger.recv(100) == b""  # nothing was told, and the line is closed
    assert [results[rank].tolist() for rank in (0, 1)] == [[3.0] * 3] * 2


def test_what_cannot_work_is_said_before_anything_starts():
    with pytest.raises(MachineCannot, match="shared memory joins ranks of one machine"):
        join(0, 2, "localhost:4000", new_token())
    with pytest.raises(BadInput, match="link='pigeon': there are shared_memory and tcp"):
        join(0, 2, new_address(), new_token(), link="pigeon")
    with pytest.raises(BadInput, match="rank 2 is none of the 2 ranks"):
        join(2, 2, new_address(), new_token())
    with pytest.raises(BadInput, match="'nowhere' is no address"):
        join(0, 2, "nowhere", new_token(), link="tcp")
    with join(0, 1, new_address(), new_token()) as comm:
        for array, words in (("text", "type <U4"), (np.ones(2, complex), "complex128")):
            with pytest.raises(BadInput, match=words):
                comm.all_reduce(array)
        with pytest.raises(BadInput, match=r"out has shape \(3,\)"):
            comm.all_reduce(np.ones(2), out=np.ones(3))
        assert comm.all_reduce(np.ones(2)).tolist() == [1.0, 1.0]  # what was refused broke nothing


_LISTING = threading.Lock()


def open_descriptors():
    with _LISTING:  # a listing is itself a descriptor, which another thread would count
        return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


@pytest.mark.parametrize("link", LINKS)
def test_ten_thousand_small_calls_leak_nothing(link):
    def body(comm):
        one = np.ones(8, np.float32)
        for _ in range(500):
            comm.all_reduce(one)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, open_descriptors()
        for number in range(10_000):
            assert comm.all_reduce(one, out=None)[0] == 2, number
        gc.collect()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, open_descriptors()
        comm.barrier()
        return after[0] - before[0], after[1] - before[1]

    start = open_descriptors()
    for grown, descriptors in values(run_threads(2, body, link=link)):
        assert grown < 20_000  # KiB; an array kept per call, or a buffer, would be a multiple
        assert descriptors <= 0  # what earlier tests left to the collector may go meanwhile
    gc.collect()
    assert open_descriptors() <= start


@pytest.mark.parametrize("link", LINKS)
def test_a_communicator_that_is_closed_leaves_no_descriptor_no_mapping_and_no_file(link):
    def mapped():
        path = Path("/proc/self/maps")
        return path.read_text(encoding="utf-8").count("tfdistedu") if path.exists() else 0

    start = open_descriptors(), mapped()
    for _ in range(3):
        values(run_threads(3, lambda c: (c.all_reduce(np.ones(1000)), c.buffer(10) is None)[0], link=link))
    gc.collect()
    assert (open_descriptors(), mapped()) == start


def test_what_follows_the_roster_at_once_is_not_swallowed_with_it():
    """The system may hand over both in one read; the rest is the first message of the control line."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b'{"where": {}, "note": 7}\n{"left": true}\n')
        meeting = mesh._Meeting(1, 2, "local:x", "token", ("control",), time.monotonic() + 5, 5.0)
        assert meeting.read_roster(ours) == {"where": {}, "note": 7}
        assert ours.recv(100) == b'{"left": true}\n'
