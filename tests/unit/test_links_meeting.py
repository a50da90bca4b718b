"""Ranks meet in calls that are matched by their order; a hang is seen at once, and says who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest

from tfdistedu.course.diagnose_meetings import check_meets, probe_meetings
from tfdistedu.course.wrong import Wrong
from tfdistedu.errors import BadInput, DeadlineExceeded
from tfdistedu.links.meeting import Call, Hang, RankFailed, WrongMeeting, run_group


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_numbers_and_arrays_are_the_same_on_all_ranks_in_every_order(seed):
    def program(group, x):
        # The second call depends on the first: ranks that were let through early would bring another value.
        return group.all_reduce("array", np.arange(3) * group.all_reduce("number", x))

    results = run_group(program, [1, 2, 4], seed).results
    assert [result.tolist() for result in results] == [[0, 21, 42]] * 3


@pytest.mark.parametrize("seed", range(5))
def test_a_hang_names_every_rank_that_waits_the_call_the_line_and_whom_it_waits_for(seed):
    def program(group, n_calls):
        for _ in range(n_calls):
            group.all_reduce("gradient", 1)

    calls: list[list[Call]] = []
    with pytest.raises(Hang) as hang:
        run_group(program, [3, 2, 3, 2], seed, calls=calls)
    assert hang.value.waits_for == {0: (1, 3), 2: (1, 3)}
    assert hang.value.finished == (1, 3)
    assert [len(made) for made in calls] == [3, 2, 3, 2]
    assert "rank 0 waits in call 2, 'gradient', for rank 1, which has finished, rank 3, which has finished" in str(
        hang.value
    )
    # A line of the links would be of no use to anybody.
    assert 'test_links_meeting.py:28: group.all_reduce("gradient", 1)' in hang.value.lines[0]


def in_two_orders(group, x):
    first, second = ("a", "b") if group.rank == 0 else ("b", "a")
    return group.all_reduce(first, x), group.all_reduce(second, 10 * x)


def test_two_names_in_one_call_are_an_error_or_are_added_up_as_tensorflow_does():
    with pytest.raises(WrongMeeting) as wrong:
        run_group(in_two_orders, [1, 2])
    assert wrong.value.number == 0
    assert set(wrong.value.names) == {"a", "b"}
    assert run_group(in_two_orders, [1, 2], by_name=False).results == [(3.0, 30.0)] * 2


def test_shapes_must_agree_also_where_names_do_not_count():
    with pytest.raises(WrongMeeting, match=r"shape \(2,\)"):
        run_group(lambda group, x: group.all_reduce("x", np.zeros(x)), [2, 3], by_name=False)


def test_errors_and_endless_loops_of_a_rank_end_the_run():
    with pytest.raises(BadInput, match="at least one"):
        run_group(lambda group, x: None, [])
    with pytest.raises(RankFailed, match="rank 1: ZeroDivisionError"):
        run_group(lambda group, x: 1 // x, [1, 0])

    def endless(group, x):
        while True:
            pass

    with pytest.raises(DeadlineExceeded, match=r"did not end within 0\.2 s"):
        run_group(endless, [1], deadline=0.2)


def test_a_fingerprint_tells_another_order_from_a_call_of_one_alone_and_from_a_wait():
    def alone(group, x):
        if group.rank == 0:
            group.all_reduce("mine", x)
        return group.all_reduce("ours", x)

    def waits(group, x):
        return group.rank or group.all_reduce("ours", x)

    assert probe_meetings(in_two_orders, [1, 2]) == ["another order"]
    assert probe_meetings(alone, [1, 2]) == ["a call that one makes and another does not"]
    assert probe_meetings(waits, [1, 2]) == ["waits", [[0, [1]]]]
    with pytest.raises(Wrong, match="worker 0 waits in call 0, ours, for worker 1: nobody can go on"):
        check_meets(waits, [[], []])
