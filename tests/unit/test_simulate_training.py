"""Training on the virtual clock: the same seed the same run, the staleness that theory says, times that add up."""

from __future__ import annotations

import numpy as np
import pytest

from tfdistedu.errors import BadInput, TfdisteduError
from tfdistedu.parameter_servers.rules import asp, backup, bsp, softsync, ssp
from tfdistedu.simulate.clock import Clock
from tfdistedu.simulate.delays import KINDS, ComputeTime, Port
from tfdistedu.simulate.digits_model import DigitsModel
from tfdistedu.simulate.setting import Away, Training
from tfdistedu.simulate.training import simulate


@pytest.fixture(scope="module")
def model():
    return DigitsModel()


def test_the_gradient_is_the_slope_of_the_loss(model):
    rng = np.random.default_rng(0)
    weights = model.first_weights(rng).astype(np.float64)
    x, y = model.digits.x_train[:20].astype(np.float64), model.digits.y_train[:20]
    way = rng.normal(size=weights.shape)
    slope = (model.loss(weights + 1e-6 * way, x, y) - model.loss(weights - 1e-6 * way, x, y)) / 2e-6
    assert way @ model.gradient_of(weights, x, y) == pytest.approx(slope, rel=1e-6)


def test_synchronous_training_is_sgd_on_the_whole_batch(model):
    """Two workers with one example each must do what one gradient of both does: values, not only progress."""
    report = simulate(Training(n_workers=2, rule=bsp(2), updates=5, batch=1, rate=0.5), DigitsModel(1, model.digits))
    rng = np.random.default_rng(0)
    weights = model.first_weights(rng)
    one = DigitsModel(1, model.digits)
    for _ in range(5):
        weights = weights - 0.5 * (one.gradient(weights, rng) + one.gradient(weights, rng)) / 2
    np.testing.assert_allclose(report.weights, weights, atol=1e-6)  # float32, added in another order


@pytest.mark.parametrize("rule", [asp(), bsp(5), ssp(1), backup(5, 2), softsync(5, 2)], ids=lambda rule: rule.name)
def test_the_same_seed_is_the_same_run_bit_for_bit_and_another_seed_another(model, rule):
    runs = [simulate(Training(5, rule, updates=60, seed=seed), model) for seed in (1, 1, 2)]
    keys = [(run.weights.tobytes(), run.curve, run.staleness, run.seconds, run.dropped, run.waited) for run in runs]
    assert keys[0] == keys[1]
    assert keys[0][0] != keys[2][0]
    assert keys[0][3] != keys[2][3]


@pytest.mark.parametrize("n_workers", [1, 4, 12])
def test_free_equal_workers_have_a_mean_staleness_of_n_minus_1(model, n_workers):
    report = simulate(Training(n_workers, asp(), updates=1000, rate=0.01), model)
    # The first n gradients find fewer updates before them: (n - 1) / 2 on average, for n of 1000.
    expected = n_workers - 1 - n_workers * (n_workers - 1) / 2 / 1000
    assert report.staleness_mean == pytest.approx(expected, abs=0.05)
    assert sum(report.staleness.values()) == report.applied == 1000


def test_constant_times_and_a_free_network_give_times_one_can_count(model):
    free = {"compute": ComputeTime(0.5, "constant"), "latency": 0.0, "bandwidth": 1e30}
    assert simulate(Training(4, bsp(4), updates=10, **free), model).seconds == pytest.approx(5.0)
    assert simulate(Training(4, asp(), updates=40, **free), model).seconds == pytest.approx(5.0)
    slow = {**free, "compute": ComputeTime(0.5, "constant", slow={2: 3.0})}
    report = simulate(Training(4, bsp(4), updates=10, **slow), model)
    assert report.seconds == pytest.approx(15.0)
    assert report.waited == pytest.approx(3 * 10 * 1.0)  # three workers wait a second each, ten times
    assert simulate(Training(4, backup(4, 1), updates=10, **slow), model).seconds == pytest.approx(5.0)


def test_the_port_of_the_server_is_a_queue():
    port = Port(latency=1.0, bandwidth=100.0)
    assert [port.passes(0.0, 200), port.passes(0.0, 200), port.passes(9.0, 200)] == [3.0, 5.0, 12.0]


def test_a_narrow_port_bounds_the_updates_a_second(model):
    narrow = {"compute": ComputeTime(0.01, "constant"), "latency": 0.0, "bandwidth": 4 * 2410 * 50.0}
    report = simulate(Training(16, asp(), updates=200, **narrow), model)
    # A gradient passes twice, as weights and as gradient: 25 a second, however many workers there are.
    assert report.updates / report.seconds == pytest.approx(25, rel=0.05)


def test_with_a_straggler_synchronous_waits_and_asynchronous_does_not(model):
    times = {
        rule.name: simulate(Training(4, rule, updates=u, compute=ComputeTime(slow={0: 10.0})), model).seconds
        for rule, u in ((bsp(4), 100), (backup(4, 1), 100), (asp(), 400), (ssp(2), 400))
    }
    # As many gradients each. Synchronous goes at the pace of the slowest, 1 s an update; SSP at last does so too.
    assert times["bsp"] == pytest.approx(100, rel=0.1)
    assert times["asp"] < times["bsp"] / 6
    assert times["backup"] < times["bsp"] / 6
    assert times["asp"] * 5 < times["ssp"] < times["bsp"]


def test_a_worker_that_leaves_is_missed_by_synchronous_training_and_its_return_mends_it(model):
    gone = Training(3, bsp(3), updates=50, away=(Away(1, 1.0),))
    with pytest.raises(TfdisteduError, match=r"nobody can go on: 2 workers wait .* of 3 gradients, and worker\(s\) 1"):
        simulate(gone, model)
    back = simulate(Training(3, bsp(3), updates=50, away=(Away(1, 1.0, 31.0),)), model)
    steady = simulate(Training(3, bsp(3), updates=50), model)
    assert back.seconds == pytest.approx(steady.seconds + 30, abs=1.0)
    assert back.dropped == 1
    without = simulate(Training(3, asp(), updates=150, away=(Away(1, 1.0),)), model)
    assert without.seconds > simulate(Training(3, asp(), updates=150), model).seconds * 1.3
    assert simulate(Training(3, ssp(0), updates=150, away=(Away(1, 1.0),)), model).updates == 150


def test_many_free_workers_fail_with_a_fixed_rate_and_train_with_the_rate_divided_by_staleness(model):
    fixed = simulate(Training(64, asp(), updates=2000), model)
    divided = simulate(Training(64, asp(), updates=2000, by_staleness=True, rate=0.5), model)
    assert fixed.accuracy < 0.5
    assert divided.accuracy > 0.85


def test_it_ends_when_the_target_is_seen(model):
    report = simulate(Training(4, asp(), updates=2000, target=0.8, looks=100), model)
    assert report.accuracy >= 0.8 > report.curve[-2].accuracy
    assert report.seconds == report.seconds_to(0.8) < report.seconds_to(1.0) == float("inf")


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_mean_that_was_asked_for(kind):
    draw = ComputeTime(2.0, kind, 0.5, slow={7: 3.0}).drawer(np.random.default_rng(0))
    draws = [draw(0) for _ in range(20000)]
    # The deviation of the mean is below 2 * 1 / sqrt(20000) = 0.014 for each kind.
    assert np.mean(draws) == pytest.approx(2.0, abs=0.06)
    assert np.mean([draw(7) for _ in range(20000)]) == pytest.approx(6.0, abs=0.2)
    assert (np.std(draws) == 0) == (kind == "constant")


def test_what_happens_at_once_is_ordered_by_the_seed():
    orders = set()
    for seed in range(20):
        clock, seen = Clock(seed), []
        for name in "abc":
            clock.at(1.0, seen.append, name)
        assert clock.run() == 3
        orders.add("".join(seen))
    assert len(orders) > 3
    clock = Clock()
    clock.at(5.0, clock.stop)
    clock.at(6.0, clock.stop)
    assert (clock.run(until=4.0), clock.now) == (0, 0.0)
    assert (clock.run(), clock.now) == (1, 5.0)
    with pytest.raises(BadInput, match=r"it is 5\.0 already"):
        clock.at(4.0, clock.stop)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"n_workers": 0}, "1 to 10000"),
        ({"n_workers": 10_001}, "1 to 10000"),
        ({"rule": bsp(5)}, "needs 5 workers, and there are 4"),
        ({"updates": 0}, "1 or more"),
        ({"rate": 0.0}, "more than 0"),
        ({"away": (Away(4, 1.0),)}, "no such worker"),
        ({"away": (Away(1, 2.0, 2.0),)}, "too soon"),
    ],
)
def test_what_cannot_be_simulated_is_refused(change, complaint):
    with pytest.raises(BadInput, match=complaint):
        Training(**{"n_workers": 4, "rule": asp(), **change})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kind": "gamma"}, "there are constant, uniform"),
        ({"mean": 0.0}, "more than 0"),
        ({"kind": "uniform", "spread": 1.0}, "below 1 for uniform"),
        ({"slow": {0: 0.0}}, "each factor"),
    ],
)
def test_what_is_no_time_is_refused(change, complaint):
    with pytest.raises(BadInput, match=complaint):
        ComputeTime(**change)
