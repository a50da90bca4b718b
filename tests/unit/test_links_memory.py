"""Ranks in one process: known orders, deadlocks named at once, and no thread left behind, whatever a program does."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time

import numpy as np
import pytest

from tfdistedu.collectives import ALGORITHMS, Schedule, execute, make_plan, ring
from tfdistedu.collectives.trace import trace
from tfdistedu.errors import BadInput, DeadlineExceeded, TfdisteduError
from tfdistedu.links import Deadlock, RankFailed, run_ranks, run_steps, try_orders


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("rank ")] == []


def swap(link, x):
    link.send(x, 1 - link.rank)
    return link.recv(1 - link.rank)


def test_what_is_sent_is_a_copy_and_what_is_received_is_ones_own():
    def run(link, x):
        if link.rank == 0:
            link.send(x, 1)
            x[:] = -1  # after the send: must not be seen by the other
            return link.recv(1)
        got = link.recv(0)
        got += 1
        link.send(got, 0)
        return got

    for seed in range(8):
        results = run_ranks(run, [np.zeros(3), np.zeros(3)], seed=seed).results
        assert [result.tolist() for result in results] == [[1.0] * 3] * 2


def test_every_shape_and_type_can_be_sent():
    def run(link, x):
        return swap(link, x)

    for value in (np.float32(1.5), np.zeros((0, 3)), np.arange(6).reshape(2, 3)[:, ::2], True, 3, np.array("ab")):
        result = run_ranks(run, [value, value]).results[0]
        np.testing.assert_array_equal(result, value)
        assert result.dtype == np.asarray(value).dtype


def test_messages_between_two_ranks_keep_their_order():
    def run(link, _):
        if link.rank == 0:
            for number in range(5):
                link.send(number, 1)
            return None
        return [int(link.recv(0)) for _ in range(5)]

    for seed in range(10):
        assert run_ranks(run, [None, None], seed=seed).results[1] == [0, 1, 2, 3, 4]


def order_of(seed):
    seen = []

    def run(link, _):
        for step in range(3):
            seen.append((link.rank, step))
            link.send(step, (link.rank + 1) % 3)
        for _ in range(3):
            link.recv((link.rank - 1) % 3)

    run_ranks(run, [None] * 3, seed=seed)
    return seen


def test_a_seed_is_an_order_and_other_seeds_are_other_orders():
    assert order_of(1) == order_of(1)
    assert len({tuple(order_of(seed)) for seed in range(20)}) > 10


def test_a_deadlock_says_who_waits_for_whom_in_which_line():
    def run(link, _):
        if link.rank == 2:
            return link.recv(0)  # line of rank 2
        return link.recv(2 if link.rank == 0 else 0)  # line of the others

    began = time.monotonic()
    with pytest.raises(Deadlock) as caught:
        run_ranks(run, [None] * 3, seed=4)
    assert time.monotonic() - began < 5  # seen at once (some milliseconds), not at the deadline of 10 s
    error = caught.value
    assert error.waiting == {0: 2, 1: 0, 2: 0}
    assert "rank 0 waits for a message from rank 2: test_links_memory.py:" in str(error)
    assert "# line of rank 2" in error.lines[2]
    assert "# line of the others" in error.lines[0]
    assert error.seed == 4
    assert "seed=4" in str(error)


def test_waiting_for_a_rank_that_has_finished_is_a_deadlock_too():
    def run(link, _):
        return None if link.rank == 0 else link.recv(0)

    with pytest.raises(Deadlock, match="rank 1 waits for a message from rank 0, which has finished"):
        run_ranks(run, [None, None])


def test_sending_first_is_safe_only_while_sends_do_not_wait():
    assert run_ranks(swap, [1, 2]).results == [2, 1]
    with pytest.raises(Deadlock, match="rank 0 waits until rank 1 takes its message"):
        run_ranks(swap, [1, 2], rendezvous=True)

    def polite(link, x):
        if link.rank == 0:
            link.send(x, 1)
            return link.recv(1)
        got = link.recv(0)
        link.send(x, 0)
        return got

    for seed in range(5):
        assert run_ranks(polite, [1, 2], seed=seed, rendezvous=True).results == [2, 1]


def test_an_exception_is_raised_with_the_rank_and_the_line():
    def run(link, x):
        if link.rank == 1:
            raise KeyError("gradient")  # THERE
        return link.recv(1)

    with pytest.raises(RankFailed, match="rank 1: KeyError: 'gradient'") as caught:
        run_ranks(run, [None] * 3)
    assert caught.value.rank == 1
    assert isinstance(caught.value.__cause__, KeyError)
    assert "# THERE" in str(caught.value)


@pytest.mark.parametrize("peer", [-1, 3, "left", 1.5])
def test_a_peer_that_is_no_rank_is_refused_by_name(peer):
    for verb in ("send", "recv"):

        def run(link, _, verb=verb):
            return link.send(1, peer) if verb == "send" else link.recv(peer)

        with pytest.raises(RankFailed, match=r"ranks are called 0 \.\. 2; is a % missing"):
            run_ranks(run, [None] * 3)


def test_talking_to_oneself_and_sending_objects_are_refused():
    with pytest.raises(RankFailed, match="rank 0 sends to itself") as caught:
        run_ranks(lambda link, _: link.send(1, link.rank), [None])
    assert isinstance(caught.value.__cause__, BadInput)
    with pytest.raises(RankFailed, match="only arrays of numbers"):
        run_ranks(lambda link, _: link.send({}, 1 - link.rank), [None, None])


def test_a_message_that_nobody_receives_is_an_error():
    with pytest.raises(TfdisteduError, match=r"rank 0 sent 1 message\(s\) to rank 1 that it never received"):
        run_ranks(lambda link, _: link.send(1, 1) if link.rank == 0 else None, [None, None])


def test_a_loop_without_end_is_stopped_and_its_line_is_named():
    def run(link, _):
        if link.rank == 1:
            while True:
                pass
        return link.recv(1)

    with pytest.raises(DeadlineExceeded, match=r"rank 1 did not end within 0.2 s; it is at test_links_memory.py:\d+: "):
        run_ranks(run, [None, None], deadline=0.2)


def test_two_ranks_that_talk_for_ever_are_stopped():
    def run(link, x):
        while True:
            x = swap(link, x)

    with pytest.raises(DeadlineExceeded):
        run_ranks(run, [1, 2], deadline=0.2)


def test_a_program_that_swallows_all_exceptions_is_stopped_too():
    def run(link, _):
        while link.rank == 0:
            with contextlib.suppress(Exception):
                time.sleep(0.001)
        return link.recv(0)

    with pytest.raises(DeadlineExceeded):
        run_ranks(run, [None, None], deadline=0.2)


def test_leaving_by_sys_exit_is_an_error_of_that_rank():
    with pytest.raises(RankFailed, match="rank 1: SystemExit"):
        run_ranks(lambda link, _: sys.exit("done") if link.rank else None, [None, None])


def test_results_that_depend_on_the_order_are_found():
    # A shared variable: one order alone always gives the same result, and looks fine.
    def make():
        shared = []

        def run(link, _):
            link.send(1, 1 - link.rank)
            shared.append(link.rank)
            link.recv(1 - link.rank)
            return np.array(shared[0])

        return run

    program = make()
    assert run_ranks(program, [None, None]).results[0].shape == ()

    def fresh(link, x):
        link.send(1, 1 - link.rank)
        x.append(link.rank)
        link.recv(1 - link.rank)
        return np.array(x[0])

    def one_list_for_both():
        shared = []
        return [shared, shared]

    with pytest.raises(TfdisteduError, match="do ranks share an array"):
        try_orders(fresh, one_list_for_both, orders=20)


def test_no_ranks_are_refused():
    with pytest.raises(BadInput, match="there is no rank"):
        run_ranks(swap, [])


def test_one_rank_alone_runs():
    assert run_ranks(lambda link, x: x + link.n_ranks, [4]).results == [5]


def random_schedule(choose):
    n_ranks, n_chunks = choose.randint(1, 5), choose.randint(1, 4)
    rounds = []
    for _ in range(choose.randint(0, 5)):
        kinds, transfers = {}, []
        for _ in range(choose.randint(0, 8) if n_ranks > 1 else 0):
            (src, dst), chunk = choose.sample(range(n_ranks), 2), choose.randrange(n_chunks)
            reduce = kinds.get((dst, chunk), choose.random() < 0.6)
            if ((dst, chunk) in kinds and not reduce) or any(t[:3] == (src, dst, chunk) for t in transfers):
                continue
            kinds[dst, chunk] = reduce
            transfers.append((src, dst, chunk, reduce))
        rounds.append(transfers)
    return Schedule("random", n_ranks, n_chunks, rounds)


def agrees_with_oracle(schedule, size, seed):
    numbers = np.random.default_rng(seed)
    arrays = [numbers.standard_normal(size).astype(np.float32) for _ in range(schedule.n_ranks)]
    expected = [array.copy() for array in arrays]
    execute(schedule, expected)
    plan = make_plan(schedule)
    run = run_ranks(lambda link, x: run_steps(link, plan, x), arrays, seed=seed)
    same = all(a.tobytes() == b.tobytes() for a, b in zip(run.results, expected, strict=True))
    return same and sorted(run.records) == sorted(trace(schedule, size, 4))


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_plans_run_over_the_link_give_the_oracles_bits(name):
    for n_ranks in (1, 2, 3, 5, 8):
        assert agrees_with_oracle(ALGORITHMS[name](n_ranks), 13, seed=n_ranks)


def test_random_schedules_over_the_link_give_the_oracles_bits():
    choose = random.Random(11)
    assert all(agrees_with_oracle(random_schedule(choose), choose.randrange(9), seed) for seed in range(150))


def test_a_plan_for_other_ranks_is_refused():
    with pytest.raises(RankFailed, match="the plan is for 3 ranks, and the link has 2"):
        run_ranks(lambda link, x: run_steps(link, make_plan(ring(3)), x), [np.ones(2)] * 2)


def two_collectives(plans_of_rank):
    def run(link, x):
        for plan in plans_of_rank(link.rank):
            x = run_steps(link, plan, x)
        return x

    return run


def test_a_collective_that_only_some_ranks_call_is_named_and_does_not_hang():
    plan = make_plan(ring(3))
    extra = two_collectives(lambda rank: [plan, plan] if rank == 0 else [plan])
    with pytest.raises(Deadlock, match="rank 0 waits for a message from rank 2, which has finished"):
        run_ranks(extra, [np.ones(6)] * 3)


def test_ranks_that_call_collectives_in_different_orders_are_told_so():
    # Without a check the bytes of one collective would be taken for those of another: a wrong sum, in silence.
    one, other = make_plan(ring(3)), make_plan(ALGORITHMS["halving_doubling"](3))
    crossed = two_collectives(lambda rank: [one, other] if rank == 0 else [other, one])
    with pytest.raises(TfdisteduError, match="do all ranks call the same"):
        run_ranks(crossed, [np.ones(6)] * 3)


def test_ranks_with_arrays_of_different_length_are_told_so():
    plan = make_plan(ring(2))
    with pytest.raises(RankFailed, match="with 3 elements, to add from rank 1, and chunk 0 to 0 with 4 elements"):
        run_ranks(lambda link, x: run_steps(link, plan, x), [np.ones(6), np.ones(8)], seed=0)
