"""The promise of the project: after the same global batches, n replicas hold one device's weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, event, example, given, settings

from tests.equivalence.cases import Case, cases, train_on_one_device, train_on_replicas
from tfdistedu.data.batches import replica_batch_sizes

# Weights and losses are of order 1 and take at most 4 steps. Adding the same numbers in another order costs some
# 1e-16 a step; batch normalisation (1/sqrt(1e-3)) and Adam (1/1e-7 on gradients that are rounding) enlarge it to less
# than 1e-12. A missing example, a wrong divisor or a wrong threshold shows at 1e-4 and up. 1e-10 is between.
TOLERANCE = 1e-10


def labels(case: Case, bound_reached: bool) -> list[str]:
    """Name what makes a case rich; a run over many cases counts them."""
    sizes = [replica_batch_sizes(size, case.n_replicas) for size in case.batch_sizes]
    tests = {
        "ragged": any(len(set(size)) > 1 for size in sizes),
        "empty replica": any(0 in size for size in sizes),
        "eager": not case.graph,
        "clipping that binds": bound_reached,
        "momentum": case.optimizer in ("momentum", "nesterov"),
        "four replicas": case.n_replicas == 4,
        "sparse": case.model == "embedding",
        "batch norm": case.model == "batch_norm",
        "L2": case.l2 > 0,
        "cross-replica": case.way == "cross_replica",
    }
    return [name for name, holds in tests.items() if holds]


def check(case: Case, strategy) -> list[str]:
    """Train both ways and compare; return the case's labels."""
    wanted, wanted_losses, bound_reached = train_on_one_device(case)
    replicas, losses = train_on_replicas(case, strategy)
    assert len(replicas) == case.n_replicas
    for rank, weights in enumerate(replicas):
        # Each replica's own copy is looked at: `get_weights` shows replica 0 alone, and would miss one that drifts.
        for index, (got, want) in enumerate(zip(weights, wanted, strict=True)):
            assert got.dtype == np.float64
            difference = np.abs(got - want).max()
            assert difference < TOLERANCE, f"replica {rank}, weight {index}: {difference:.1e} from one device"
    assert np.abs(np.subtract(losses, wanted_losses)).max() < TOLERANCE
    return labels(case, bound_reached)


BASE = Case("mlp", "mean", False, "momentum", "global_clipnorm", 0.05, 0.1, (5, 2, 1), 4, True, "replica", 7)


@example(BASE)
@example(Case(**{**vars(BASE), "loss": "scalar", "graph": False, "n_replicas": 3}))
@example(Case(**{**vars(BASE), "model": "embedding", "optimizer": "adam", "clip": "clipnorm"}))
@example(Case(**{**vars(BASE), "model": "batch_norm", "loss": "sum", "n_replicas": 3}))
@example(Case(**{**vars(BASE), "optimizer": "adamw", "clip": "clipvalue", "way": "cross_replica", "weighted": True}))
@example(Case("batch_norm", "mean", False, "sgd", None, 0.05, 0.0, (1, 2), 4, True, "replica", 0))  # shapes per replica
@given(cases())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_weights_and_losses_equal_those_of_one_device(strategy_with, float64, case):
    for label in check(case, strategy_with(case.n_replicas)):
        event(label)


@pytest.mark.parametrize("wrong", ["mean of means", "clip before", "no reduction"])
def test_the_check_can_fail(strategy_with, float64, monkeypatch, wrong):
    """Three known mistakes, put into our own step: the comparison must see each of them."""
    import tfdistedu.step.optimizer as optimizer
    import tfdistedu.step.replica as replica

    if wrong == "mean of means":
        monkeypatch.setattr(replica, "count_examples", _pretend_even_batches(replica.count_examples))
    elif wrong == "clip before":
        monkeypatch.setattr(optimizer.ReduceFirst, "apply", _clip_then_reduce(optimizer))
    else:
        monkeypatch.setattr(optimizer, "all_reduce_sum", lambda gradients: gradients)
    with pytest.raises(AssertionError, match="from one device"):
        check(BASE, strategy_with(4))


def _pretend_even_batches(count_examples):
    def wrong(batch):
        count, _ = count_examples(batch)
        return count, 4 * count  # divides by four times my own count: the mean of the replicas' means

    return wrong


def _clip_then_reduce(optimizer):
    def apply(self, grads, trainable_variables=None):
        clipped = self._clip_gradients(list(grads))
        super(optimizer.ReduceFirst, self).apply(optimizer.all_reduce_sum(clipped), trainable_variables)

    return apply
