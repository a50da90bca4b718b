"""In any order in which workers may be scheduled: the bounds of the rules hold, and the books agree with a recount."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfdistedu.parameter_servers.ledger import Ledger
from tfdistedu.parameter_servers.rules import asp, backup, bsp, softsync, ssp


def drive(rule, n_workers, choices):
    """Let workers read and write in an order drawn by `choices`; return what happened, recounted without the ledger."""
    ledger = Ledger(rule)
    for worker in range(n_workers):
        ledger.join(worker)
    reading, events, finished = {}, [], dict.fromkeys(range(n_workers), 0)
    for choice in choices:
        can = [w for w in range(n_workers) if w in reading or ledger.may_start(w)]
        assert can, "nobody can go on"
        worker = can[choice % len(can)]
        if worker not in reading:
            reading[worker] = ledger.version
            events.append(("start", worker, finished[worker] - min(finished.values())))
            continue
        version, read = ledger.version, reading.pop(worker)
        fate = ledger.write(worker, read)
        finished[worker] += 1
        events.append((fate, worker, version - read))
        if fate == "applied":
            assert len(ledger.take()) == rule.needs
    return ledger, events


RULES = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.one_of(
            st.just(bsp(n)),
            st.integers(0, n - 1).map(lambda spare: backup(n, spare)),
            st.integers(0, 3).map(ssp),
            st.just(asp()),
            st.integers(1, n).map(lambda splits: softsync(n, splits)),
        ),
    )
)


@given(RULES, st.lists(st.integers(0, 59), max_size=80))
def test_no_order_breaks_the_bound_and_the_books_agree(case, choices):
    n_workers, rule = case
    ledger, events = drive(rule, n_workers, choices)
    stale = [staleness for fate, _, staleness in events if fate in ("applied", "held")]
    assert all(staleness <= rule.bound(n_workers) for staleness in stale)
    assert ledger.version == sum(fate == "applied" for fate, *_ in events)
    assert ledger.version * rule.needs + len(ledger.held) == len(stale)
    if rule.waits_for == "slowest":
        assert all(ahead <= rule.slack for fate, _, ahead in events if fate == "start")


@pytest.mark.parametrize("slack", [0, 1, 3])
def test_the_bound_of_ssp_holds_in_thousands_of_drawn_schedules(slack):
    """A gate that lets everybody pass breaks it in the first dozens."""
    rng = random.Random(slack)
    n_workers, rule = 3, ssp(slack)
    ahead_most = 0
    for _ in range(3400):  # 10,200 schedules in all
        # Favour two of them for a while: the even draw seldom goes to the edge.
        choices = [rng.choice((0, 1, rng.randrange(60))) for _ in range(rng.randrange(60))]
        _, events = drive(rule, n_workers, choices)
        for fate, _, value in events:
            assert value <= (slack if fate == "start" else rule.bound(n_workers))
            ahead_most = max(ahead_most, value if fate == "start" else 0)
    assert ahead_most == slack


@pytest.mark.parametrize("slack", [0, 1, 3])
@pytest.mark.parametrize("n_workers", [2, 4])
def test_the_bound_of_ssp_is_reached(slack, n_workers):
    """So it is not too generous: one worker reads when it is furthest ahead, then the others run as far as they may."""
    ledger = Ledger(ssp(slack))
    for worker in range(n_workers):
        ledger.join(worker)
    for _ in range(slack):
        assert ledger.may_start(0)
        ledger.write(0, ledger.version)
    assert ledger.may_start(0)
    read = ledger.version
    ahead = True
    while ahead:
        ahead = [worker for worker in range(1, n_workers) if ledger.may_start(worker)]
        for worker in ahead:
            ledger.write(worker, ledger.version)
    assert ledger.version - read == ledger.rule.bound(n_workers)


@settings(max_examples=50)
@given(st.integers(2, 5), st.lists(st.integers(0, 59), min_size=30, max_size=60))
def test_asp_is_never_refused(n_workers, choices):
    _, events = drive(asp(), n_workers, choices)
    assert sum(fate == "start" for fate, *_ in events) + sum(fate == "applied" for fate, *_ in events) == len(choices)
