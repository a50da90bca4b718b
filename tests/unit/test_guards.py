"""Every mix-up is refused with the remedy, and the right thing beside it passes."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.equivalence.small import X, Y, batches, mlp
from tfdistedu.data.audit import audit
from tfdistedu.data.batches import batched_dataset, on_replicas
from tfdistedu.devices import mirrored_strategy
from tfdistedu.errors import BadInput, DeadlineExceeded, MachineCannot, TfdisteduError
from tfdistedu.step.accumulate import make_accumulating_step
from tfdistedu.step.cross_replica import make_cross_replica_step
from tfdistedu.step.guards import check_replica_context
from tfdistedu.step.optimizer import SGD, Adam, reduce_first
from tfdistedu.step.parts import ReplicaWarning, check_aggregation, check_variables
from tfdistedu.step.precision import LossScale
from tfdistedu.step.replica import make_train_step
from tfdistedu.synchronous.keras_fit import check_batches
from tfdistedu.synchronous.loop import distribute, evaluate, train


def parts(model_in, optimizer_in, optimizer=lambda: SGD(0.1)):
    with model_in.scope():
        model = mlp()
    with optimizer_in.scope():
        return model, optimizer()


@pytest.fixture
def two(strategy_with):
    return strategy_with(2)


@pytest.fixture
def one(strategy_with):
    return strategy_with(1)


@pytest.mark.parametrize("make", [make_train_step, make_cross_replica_step])
def test_a_model_made_outside_the_scope_is_refused(two, one, make):
    with pytest.raises(BadInput, match=r"the model's variable '.*kernel' was made outside this strategy's scope"):
        make(two, *parts(one, two), "mse")
    make(two, *parts(two, two), "mse")


def test_a_model_of_another_strategy_object_is_refused_also_with_as_many_replicas(two):
    """A notebook cell that makes the strategy again is the common case: everything looks the same."""
    with pytest.raises(BadInput, match="in the scope of another strategy object"):
        make_train_step(mirrored_strategy(2), *parts(two, two), "mse")


def test_a_mirrored_model_without_its_strategy_is_refused(two, one):
    with pytest.raises(BadInput, match="in the scope of another strategy object"):
        make_train_step(one, *parts(two, one), "mse")
    make_train_step(one, *parts(one, one), "mse")


def test_an_optimizer_that_was_built_elsewhere_is_refused(two, one, strategy_with):
    for elsewhere in (one, strategy_with(3)):
        _, optimizer = parts(elsewhere, elsewhere, lambda: Adam(0.1))
        with two.scope():
            model = mlp()
        with pytest.raises(BadInput, match="the optimizer's variable"):  # before it is built, too
            make_train_step(two, model, optimizer, "mse")
        with elsewhere.scope():
            optimizer.build(parts(elsewhere, elsewhere)[0].trainable_variables)
        with pytest.raises(BadInput, match="the optimizer's variable"):
            make_train_step(two, model, optimizer, "mse")


def test_an_optimizer_made_outside_and_not_built_is_refused_or_right(two, one):
    """Its learning rate is a variable, and was made outside."""
    with pytest.raises(BadInput, match="the optimizer's variable"):
        make_train_step(two, *parts(two, one), "mse")


def test_a_metric_made_outside_the_scope_is_refused(two):
    model, optimizer = parts(two, two)
    outside = keras.metrics.MeanSquaredError(name="mine")
    with pytest.raises(BadInput, match="metric mine's variable"):
        make_train_step(two, model, optimizer, "mse", metrics=[outside])
    with pytest.raises(BadInput, match="metric mine's variable"):
        evaluate(two, model, batched_dataset((X, Y), 8), [outside])


@pytest.mark.parametrize("wrong", ["accuracy", keras.metrics.MeanSquaredError, None])
def test_what_is_no_metric_object_is_refused(two, wrong):
    model, optimizer = parts(two, two)
    with pytest.raises(BadInput, match="Keras metric object"):
        make_train_step(two, model, optimizer, "mse", metrics=[wrong])
    with pytest.raises(BadInput, match="Keras metric object"):
        evaluate(two, model, batched_dataset((X, Y), 8), [wrong])


def test_two_metrics_of_one_name_are_refused(two):
    """Results are given by name: one of the two would be lost."""
    model, _ = parts(two, two)
    with two.scope():
        metrics = [keras.metrics.MeanSquaredError(), keras.metrics.MeanSquaredError()]
    with pytest.raises(BadInput, match="two metrics have the name 'mean_squared_error'"):
        evaluate(two, model, batched_dataset((X, Y), 8), metrics)


@pytest.mark.parametrize("graph", [True, False])
def test_a_batch_that_was_not_distributed_is_refused(two, one, graph):
    step = make_train_step(two, *parts(two, two), "mse", graph=graph)
    (batch,) = batches((4,))
    for plain in (batch, tuple(map(tf.constant, batch))):
        with pytest.raises(BadInput, match=r"of shape \(4, 3\) that was not distributed"):
            step(plain)
    step(on_replicas(two, batch))
    make_train_step(one, *parts(one, one), "mse", graph=graph)(batch)  # one device: nothing to distribute


class MeanSeen(keras.layers.Layer):
    """Keeps the mean of the batch that it saw, as an own kind of normalisation would."""

    def __init__(self, aggregation):
        super().__init__()
        self.aggregation = aggregation

    def build(self, shape):
        self.seen = self.add_weight(shape=shape[1:], trainable=False, aggregation=self.aggregation, name="seen")

    def call(self, x):
        self.seen.assign(keras.ops.mean(x, axis=0))
        return x


@pytest.mark.parametrize("make", [make_train_step, make_cross_replica_step])
@pytest.mark.parametrize(("aggregation", "warned"), [(None, True), ("mean", False), ("only_first_replica", False)])
def test_state_of_a_layer_whose_copies_differ_is_warned_of_after_the_first_step(two, make, aggregation, warned):
    """TensorFlow says nothing, and what is saved is the first replica's."""
    with two.scope():
        model = keras.Sequential([keras.layers.Input((3,)), MeanSeen(aggregation), keras.layers.Dense(2)])
        optimizer = SGD(0.1)
    step, (batch,) = make(two, model, optimizer, "mse"), batches((8,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReplicaWarning)
        step(on_replicas(two, batch))
        step(on_replicas(two, batch))
    said = [str(warning.message) for warning in caught if warning.category is ReplicaWarning]
    assert len(said) == warned
    assert all("seen' is another one on each replica" in text and "aggregation" in text for text in said)
    if aggregation == "mean":
        assert model.layers[0].seen.numpy() == pytest.approx(batch[0].mean(0), rel=1e-6)


def test_half_a_batch_that_was_not_distributed_is_refused(two):
    step = make_train_step(two, *parts(two, two), "mse", graph=False)
    (batch,) = batches((4,))
    with pytest.raises(BadInput, match=r"of shape \(4, 2\) that was not distributed"):
        step((on_replicas(two, batch)[0], batch[1]))


@pytest.mark.parametrize(("cut_for", "step_of"), [(4, 2), (2, 4), (2, 1)])
def test_a_batch_that_was_cut_for_another_strategy_is_refused(strategy_with, cut_for, step_of):
    """4 for 2 would train on the first half of the batch, silently."""
    mine = strategy_with(step_of)
    step = make_train_step(mine, *parts(mine, mine), "mse", graph=False)
    (batch,) = batches((8,))
    with pytest.raises(BadInput, match=f"with {step_of} replica.* cut into {cut_for} parts, for another strategy"):
        step(on_replicas(strategy_with(cut_for), batch))
    step(on_replicas(mine, batch))


@pytest.mark.parametrize("in_graph", [True, False])
def test_a_step_called_inside_of_a_replica_function_is_refused(two, in_graph):
    step = make_train_step(two, *parts(two, two), "mse", graph=False)
    batch = on_replicas(two, batches((4,))[0])

    def run():
        return two.run(lambda *parts: step(parts), args=batch)

    with pytest.raises(BadInput, match=r"was called inside a replica function \(on replica"):
        (tf.function(run, autograph=False) if in_graph else run)()
    step(batch)


def test_what_belongs_into_a_replica_function_is_refused_outside(two, one):
    with two.scope(), pytest.raises(BadInput, match=r"mine was called in cross-replica context. Call it in a function"):
        check_replica_context("mine")
    two.run(lambda: check_replica_context("mine"))
    with one.scope():
        check_replica_context("mine")


def test_an_overflow_safe_optimizer_is_refused_in_cross_replica_context(two):
    """`LossScale.apply` reduces; outside of the replicas there is nothing to reduce."""
    model, optimizer = parts(two, two, lambda: LossScale(SGD(0.1)))
    optimizer.build(model.trainable_variables)
    gradients = [tf.zeros_like(v.value) for v in model.trainable_variables]
    with two.scope(), pytest.raises(BadInput, match=r"LossScale.apply was called in cross-replica context"):
        optimizer.apply(gradients, model.trainable_variables)
    two.run(lambda: optimizer.apply(gradients, model.trainable_variables))


SHIPPED = {
    "clipnorm": lambda: keras.optimizers.SGD(0.1, clipnorm=1.0),
    "global_clipnorm": lambda: keras.optimizers.Adam(0.1, global_clipnorm=1.0),
    "clipvalue": lambda: keras.optimizers.AdamW(0.1, clipvalue=1.0),
    "gradient_accumulation_steps": lambda: keras.optimizers.SGD(0.1, gradient_accumulation_steps=2),
    "only replica 0": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)),
}


@pytest.mark.parametrize("setting", SHIPPED)
def test_what_keras_does_per_replica_is_refused_on_several_and_taken_on_one(two, one, setting):
    with pytest.raises(BadInput, match=setting) as refused:
        make_train_step(two, *parts(two, two, SHIPPED[setting]), "mse")
    assert "Use tfdistedu" in str(refused.value)
    make_train_step(one, *parts(one, one, SHIPPED[setting]), "mse")


def test_keras_optimizers_without_these_are_taken_and_ours_with_them(two):
    for optimizer in (
        lambda: keras.optimizers.Adam(0.1),
        lambda: reduce_first(keras.optimizers.Lion)(0.1, clipnorm=1.0),
    ):
        make_train_step(two, *parts(two, two, optimizer), "mse")


def test_our_optimizer_refuses_to_accumulate_inside_a_branch(two, one):
    with two.scope(), pytest.raises(BadInput, match="make_accumulating_step"):
        SGD(0.1, gradient_accumulation_steps=2)
    with one.scope():
        SGD(0.1, gradient_accumulation_steps=2)


@pytest.mark.parametrize("wrong", ["adam", keras.optimizers.SGD, None])
def test_something_that_is_no_optimizer_object_is_refused(two, wrong):
    model, _ = parts(two, two)
    with pytest.raises(BadInput, match="Keras 3 optimizer object"):
        make_train_step(two, model, wrong, "mse")


def test_variables_that_drift_apart_are_refused_and_the_three_ways_out_pass(two, one):
    """TensorFlow 2.21 no longer complains: the copies just differ, as the first lines show."""
    with two.scope():
        drifting = tf.Variable(0.0, trainable=False, name="counter")
    number = lambda: tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)  # noqa: E731
    two.run(lambda: drifting.assign(number()))
    assert [float(copy) for copy in drifting.values] == [0.0, 1.0]
    with pytest.raises(BadInput, match=r"'counter.*' has no aggregation.*SUM or MEAN"):
        check_aggregation(two, [drifting], "module")

    aggregation = tf.VariableAggregation
    for way, copies in (
        (aggregation.SUM, [1.0, 1.0]),
        (aggregation.MEAN, [0.5, 0.5]),
        (aggregation.ONLY_FIRST_REPLICA, [0.0, 0.0]),
    ):
        with two.scope():
            variable = tf.Variable(7.0, trainable=False, aggregation=way)
        check_aggregation(two, [variable], "module")
        two.run(lambda variable=variable: variable.assign(number()))
        assert [float(copy) for copy in variable.values] == copies
    with two.scope():
        own = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=aggregation.SUM)
    check_aggregation(two, [own], "module")
    two.run(lambda: own.assign_add(number() + 1))
    assert float(own.read_value()) == 3.0
    check_aggregation(one, [tf.Variable(0.0)], "module")


def test_a_variable_without_a_scope_is_refused(two):
    """Left alone it is one variable that all replicas add to: two adds of 1 give 2."""
    shared = tf.Variable(0.0)
    two.run(lambda: shared.assign_add(1.0) and None)
    assert float(shared) == 2.0
    for check in (check_variables, check_aggregation):
        with pytest.raises(BadInput, match="outside this strategy's scope"):
            check(two, [shared], "module")


@pytest.mark.parametrize("kind", [BadInput, MachineCannot, DeadlineExceeded, TfdisteduError])
def test_an_error_of_ours_keeps_its_class_in_a_traced_function(kind):
    """TensorFlow would put a StagingError in its place, which `except BadInput` and the exit status do not know."""

    @tf.function
    def traced():
        raise kind("what, where, and what to do")

    with pytest.raises(kind, match="what, where, and what to do"):
        traced()
    assert str(kind("what")) == str(pickle.loads(pickle.dumps(kind("what")))) == "what"


@pytest.mark.parametrize("graph", [True, False])
def test_a_loss_that_the_step_cannot_take_is_refused_in_a_graph_too(two, graph):
    step = make_train_step(two, *parts(two, two), lambda y, p: tf.reduce_mean(p), graph=graph)
    weighted = on_replicas(two, (X[:4], Y[:4], Y[:4, 0]))
    with pytest.raises(BadInput, match="already a scalar; sample_weight needs one value an example"):
        step(weighted)


def test_a_dataset_that_never_ends_or_is_none_is_refused(two):
    endless = batched_dataset((X, Y), 8).repeat()
    for wrong, message in (
        (endless, "never ends"),
        (two.experimental_distribute_dataset(endless), "never ends"),
        (X, "must be"),
    ):
        with pytest.raises(BadInput, match=message):
            distribute(two, wrong)


def test_the_loop_takes_a_plain_and_a_distributed_dataset(two):
    data = batched_dataset((X[:8], Y[:8]), 4)
    losses = []
    for dataset in (data, two.experimental_distribute_dataset(data)):
        step = make_train_step(two, *parts(two, two), "mse", graph=False)
        losses.append([epoch.loss for epoch in train(two, step, dataset, epochs=2)])
    assert losses[0] == losses[1]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(
    ("elements", "got"),
    [({"x": X, "y": Y}, "a dict"), (X, "a "), ((X,), "1 parts"), ((X, Y, Y[:, 0], Y), "4 parts")],
)
def test_a_batch_that_is_not_x_and_y_is_refused(strategy_with, n, elements, got):
    """A dictionary was iterated over, and its names were given to the model."""
    strategy = strategy_with(n)
    step = make_train_step(strategy, *parts(strategy, strategy), "mse")
    dataset = tf.data.Dataset.from_tensor_slices(elements).batch(4)
    with pytest.raises(BadInput, match=rf"a batch must be \(x, y\) or \(x, y, sample_weight\), not {got}"):
        train(strategy, step, dataset)


def test_a_batch_without_weights_may_say_so(one):
    """Keras takes (x, y, None) too."""
    step = make_train_step(one, *parts(one, one), "mse")
    with_none = float(step((tf.constant(X[:4]), tf.constant(Y[:4]), None)))
    assert with_none == float(make_train_step(one, *parts(one, one), "mse")((tf.constant(X[:4]), tf.constant(Y[:4]))))


@pytest.mark.parametrize("n", [1, 2])
def test_a_dataset_that_was_not_batched_is_refused(strategy_with, n):
    """TensorFlow ends with "list index out of range"."""
    for function in (distribute, lambda *a: audit(*a, n_examples=8), check_batches):
        with pytest.raises(BadInput, match=r"single examples, not batches.*dataset\.batch"):
            function(strategy_with(n), tf.data.Dataset.range(8))


def test_a_dataset_that_was_cut_for_another_strategy_is_refused_in_the_loop_of_one_device(one, two):
    step = make_train_step(one, *parts(one, one), "mse")
    with pytest.raises(BadInput, match="cut into 2 parts, for another strategy"):
        train(one, step, two.experimental_distribute_dataset(batched_dataset((X[:8], Y[:8]), 4)))


@pytest.mark.parametrize(
    "make", [make_train_step, make_cross_replica_step, partial(make_accumulating_step, n_micro_steps=1)]
)
def test_a_model_without_weights_is_refused(two, make):
    """Keras would say that the optimizer "can only be called for the variables it was originally built with"."""
    for build in (lambda: keras.Sequential([keras.layers.Dense(2)]), lambda: keras.Sequential([])):
        with two.scope():
            model, optimizer = build(), SGD(0.1)
        with pytest.raises(BadInput, match="is not built, so it has no variables yet"):
            make(two, model, optimizer, "mse")
    with two.scope():
        model = keras.Sequential([keras.layers.Dense(2)])
        model.build((None, 3))
    make(two, model, optimizer, "mse")


@pytest.mark.parametrize("n", [1, 2])
def test_nothing_is_not_evaluated_as_a_loss_of_zero(strategy_with, n):
    strategy = strategy_with(n)
    with strategy.scope():
        model, metrics = mlp(), [keras.metrics.MeanSquaredError()]
    empty = batched_dataset((X[:4], Y[:4]), 8).take(0)
    with pytest.raises(BadInput, match="evaluate: the dataset gave no example"):
        evaluate(strategy, model, empty, metrics)
    with pytest.raises(BadInput, match="gives no batch"):
        check_batches(strategy, empty)


def test_weights_overwritten_by_their_average_inside_a_graph_are_refused_and_right_elsewhere(two, one):
    """In a branch of a graph TensorFlow stops with "merge_call called while defining a new graph"."""
    settings = {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2}
    step = make_train_step(two, *parts(two, two, lambda: SGD(0.1, **settings)), "mse")
    data = [(x.astype("float32"), y.astype("float32")) for x, y in batches((4, 3))]
    with pytest.raises(BadInput, match=r"ema_overwrite_frequency=2\) on 2 replicas.*cross_replica"):
        step(on_replicas(two, data[0]))
    weights = []
    for strategy, make in ((one, make_train_step), (two, make_cross_replica_step)):
        model, optimizer = parts(strategy, strategy, lambda: SGD(0.1, **settings))
        step = make(strategy, model, optimizer, "mse")
        for batch in data:
            step(on_replicas(strategy, batch))
        weights.append(model.get_weights())
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)  # float32, two steps of order 1
