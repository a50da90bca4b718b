"""The rules of parameter servers, by hand-made cases: who waits, what counts, how much."""

from __future__ import annotations

import numpy as np
import pytest

from tfdistedu.errors import BadInput
from tfdistedu.parameter_servers.ledger import Ledger
from tfdistedu.parameter_servers.rules import (
    asp,
    backup,
    bsp,
    delay_compensated,
    may_start_ssp,
    rate_by_staleness,
    softsync,
    ssp,
)


def ledger_of(rule, n_workers):
    ledger = Ledger(rule)
    for worker in range(n_workers):
        ledger.join(worker)
    return ledger


def test_synchronous_waits_for_all_and_starts_all_at_once():
    ledger = ledger_of(bsp(3), 3)
    assert [ledger.write(worker, 0) for worker in (2, 0)] == ["held", "held"]
    assert [ledger.may_start(worker) for worker in range(3)] == [False, True, False]
    assert ledger.write(1, 0) == "applied"
    assert (ledger.version, ledger.take(), ledger.held) == (1, [0, 0, 0], [])
    assert all(ledger.may_start(worker) for worker in range(3))


def test_with_a_backup_worker_the_late_gradient_is_dropped_and_its_worker_goes_on_with_the_newest():
    ledger = ledger_of(backup(3, 1), 3)
    assert [ledger.write(0, 0), ledger.write(1, 0)] == ["held", "applied"]
    ledger.take()
    assert ledger.write(2, 0) == "dropped"
    assert ledger.may_start(2)
    # It does not count for the second update: a rule that only counted to two would apply here.
    assert ledger.write(0, 1) == "held"
    assert ledger.write(2, 1) == "applied"


def test_a_worker_that_gave_its_gradient_left_and_came_back_gives_no_second_one():
    ledger = ledger_of(bsp(2), 2)
    ledger.write(0, 0)
    ledger.leave(0)
    ledger.join(0)
    assert not ledger.may_start(0)
    assert ledger.write(1, 0) == "applied"
    assert ledger.may_start(0)


def test_stale_synchronous_lets_a_worker_run_ahead_by_its_slack_and_no_further():
    ledger = ledger_of(ssp(2), 2)
    started = 0
    while ledger.may_start(0):
        ledger.write(0, ledger.version)
        started += 1
    assert started == 3  # steps 0, 1, 2 while the other is in step 0: a gate with < would stop at 2
    ledger.write(1, 0)
    assert ledger.may_start(0)


def test_who_leaves_is_not_waited_for_and_who_returns_stands_where_the_slowest_is():
    ledger = ledger_of(ssp(0), 3)
    for worker in (0, 1):
        ledger.write(worker, ledger.version)
    assert not ledger.may_start(0)
    ledger.leave(2)
    assert ledger.may_start(0)
    ledger.write(0, 2)
    ledger.join(2)
    assert ledger.clocks == {0: 2, 1: 1, 2: 1}


def test_a_gradient_that_is_sent_again_counts_once():
    ledger = ledger_of(asp(), 1)
    assert [ledger.write(0, 0, 0), ledger.write(0, 0, 0), ledger.write(0, 1, 1), ledger.write(0, 0, 0)] == [
        "applied", "repeated", "applied", "repeated",
    ]  # fmt: skip
    assert (ledger.version, ledger.clocks) == (2, {0: 2})


def test_the_staleness_is_counted_at_the_write():
    ledger = ledger_of(asp(), 2)
    for _ in range(3):
        ledger.write(0, ledger.version)
    ledger.write(1, 0)
    assert ledger.take() == [0, 0, 0, 3]


@pytest.mark.parametrize(
    ("n_workers", "splits", "needs"), [(8, 1, 8), (8, 3, 2), (8, 8, 1), (1, 1, 1)], ids=lambda value: str(value)
)
def test_softsync_waits_for_a_part_of_the_gradients(n_workers, splits, needs):
    assert softsync(n_workers, splits).needs == needs


def test_rate_and_compensation():
    assert [rate_by_staleness(0.6, staleness) for staleness in range(4)] == [0.6, 0.6, 0.3, 0.6 / 3]
    # On a parabola w^2/2 * h the gradient is h w: with strength 1 / (h w^2) the correction is exact.
    h, read, now = 3.0, np.array([2.0]), np.array([1.5])
    gradient = h * read
    assert delay_compensated(gradient, read, now, strength=h / gradient[0] ** 2) == pytest.approx(h * now)
    assert delay_compensated(gradient, read, now, strength=0.0) == gradient


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: bsp(0), r"bsp\(n_workers\) must be a whole number, 1 or more, not 0"),
        (lambda: ssp(-1), "0 or more, not -1"),
        (lambda: ssp(1.5), "not 1.5"),
        (lambda: ssp(True), "not True"),
        (lambda: backup(3, 3), "somebody has to be waited for"),
        (lambda: softsync(2, 3), "at most the number of workers"),
        (lambda: ledger_of(asp(), 1).join(0), "takes part already"),
        (lambda: ledger_of(asp(), 1).write(1, 0), r"join\(1\) lets it"),
        (lambda: ledger_of(asp(), 1).write(0, 1), "read version 1, and the newest is 0"),
    ],
)
def test_what_makes_no_rule_and_no_book_is_refused(make, complaint):
    with pytest.raises(BadInput, match=complaint):
        make()


def test_the_gate_alone():
    assert [may_start_ssp(clock, [clock, 2, 5], 1) for clock in (2, 3, 4)] == [True, True, False]
