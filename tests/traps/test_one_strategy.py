"""One strategy object from the scope to the last step: what happens with two, or with none."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.traps.oracle import on_each_replica, per_replica

PARTS = [np.array([1.0, 2.0]), np.array([3.0, -1.0])]


@pytest.fixture
def another(upstream_mirrored):
    """The same devices once more, in another object: what a notebook's cell makes when it runs again."""
    upstream_mirrored(2)
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())


@pytest.mark.upstream
def test_a_step_of_another_strategy_object_is_refused_in_the_step(upstream_mirrored, another):
    with upstream_mirrored(2).scope():
        weights, optimizer = keras.Variable(np.zeros(2), dtype="float64"), keras.optimizers.SGD(0.5)
        optimizer.build([weights])
    with pytest.raises(RuntimeError, match=r"Mixing different tf.distribute.Strategy objects"):
        another.run(lambda mine: optimizer.apply([mine], [weights]), args=(per_replica(another, PARTS),))


@pytest.mark.upstream
def test_slots_of_an_optimizer_of_another_strategy_object_are_refused(upstream_mirrored, another):
    with upstream_mirrored(2).scope():
        weights = keras.Variable(np.zeros(2), dtype="float64")
    with another.scope():
        optimizer = keras.optimizers.SGD(0.5, momentum=0.5)
        with pytest.raises(ValueError, match="must only be passed a variable created in this"):
            optimizer.build([weights])


@pytest.mark.upstream
def test_plain_sgd_of_another_strategy_object_passes_and_happens_to_be_right(upstream_mirrored, another):
    # Nothing to place beside the weights, so nothing complains: the fault shows on the day momentum is added.
    strategy = upstream_mirrored(2)
    with strategy.scope():
        weights = keras.Variable(np.zeros(2), dtype="float64")
    with another.scope():
        optimizer = keras.optimizers.SGD(0.5)
        optimizer.build([weights])
    another.run(lambda mine: optimizer.apply([mine], [weights]), args=(per_replica(another, PARTS),))
    np.testing.assert_allclose(on_each_replica(strategy, weights), [-0.5 * sum(PARTS)] * 2, rtol=1e-12)


@pytest.mark.upstream
def test_weights_from_outside_the_scope_are_refused_without_a_word(upstream_mirrored):
    strategy = upstream_mirrored(2)
    weights = keras.Variable(np.zeros(2), dtype="float64")
    with strategy.scope():
        optimizer = keras.optimizers.SGD(0.5)
        optimizer.build([weights])
    with pytest.raises(AssertionError) as refused:
        strategy.run(lambda mine: optimizer.apply([mine], [weights]), args=(per_replica(strategy, PARTS),))
    assert not str(refused.value)


@pytest.mark.parametrize("what", ["model", "optimizer", "both"])
def test_our_step_names_what_is_of_another_strategy_object(strategy_with, what):
    from tfdistedu.devices import mirrored_strategy
    from tfdistedu.errors import BadInput
    from tfdistedu.models import digits_mlp
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step

    strategy, old = strategy_with(2), mirrored_strategy(2)
    with (old if what != "optimizer" else strategy).scope():
        model = digits_mlp(hidden=2)
    with (old if what != "model" else strategy).scope():
        optimizer = SGD(0.5)  # without slots: TensorFlow itself would let it pass
        if what != "model":
            optimizer.build(model.trainable_variables)
    named = "optimizer" if what == "optimizer" else "model"
    with pytest.raises(BadInput, match=f"the {named}'s variable .* in the scope of another strategy object"):
        make_train_step(strategy, model, optimizer, "mse")


def test_our_step_names_a_model_from_outside_the_scope(strategy_with):
    from tfdistedu.errors import BadInput
    from tfdistedu.models import digits_mlp
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step

    strategy, model = strategy_with(2), digits_mlp(hidden=2)
    with strategy.scope():
        optimizer = SGD(0.5)
    with pytest.raises(BadInput, match=r"the model's variable .* outside this strategy's scope"):
        make_train_step(strategy, model, optimizer, "mse")
