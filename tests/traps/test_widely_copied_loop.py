"""The custom loop that most tutorials print: each of its faults, in numbers, and beside them our loop without them.

One weight w, starting at 0, predicts y from x = 1. An example's loss is (y - w)^2, so the first gradient is -2y, and
one step of SGD(0.5) moves w to the mean of the labels it trained on. These numbers are exact in float32, so the tests
need no tolerance.
"""

from __future__ import annotations

import numpy as np
import pytest

from tfdistedu.bench.widely_copied import mean_crossentropy, train_widely_copied
from tfdistedu.data.batches import batched_dataset
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.replica import make_train_step
from tfdistedu.synchronous.loop import train

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)

EIGHT = np.arange(1, 9, dtype=np.float32)  # mean 4.5; the mean of the squares 25.5

# The loop as it is printed: Adam in the scope, the dataset as it comes. Only devices, model and data are filled in.
AS_PRINTED = """
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
x_train, y_train = np.ones((8, 1), "float32"), np.arange(1, 9).astype("float32")

strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")])
    optimizer = tf.keras.optimizers.Adam()
    loss_object = tf.keras.losses.MeanSquaredError()
train_dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).batch(8)


@tf.function
def distributed_train_step(inputs):
    features, labels = inputs
    with tf.GradientTape() as tape:
        loss = loss_object(labels, model(features, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(2):
    total_loss = 0.0
    num_batches = 0
    for inputs in train_dataset:
        per_replica_loss = strategy.run(distributed_train_step, args=(inputs,))
        total_loss += strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_loss, axis=None)
        num_batches += 1
    print("Epoch {}: Loss = {}".format(epoch, total_loss / num_batches))
"""


def labels(y) -> tuple[np.ndarray, np.ndarray]:
    y = np.asarray(y, dtype=np.float32)
    return np.ones((len(y), 1), np.float32), y[:, None]


def one_weight(strategy, rate: float = 0.5):
    with strategy.scope():
        model = keras.Sequential(
            [keras.layers.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")]
        )
        optimizer = keras.optimizers.SGD(rate)
    return model, optimizer


def weight(model) -> float:
    return model.get_weights()[0].item()


def copied(strategy, y, loss, batch: int = 8, rate: float = 0.5, distribute: bool = False) -> tuple[float, float]:
    """Train one epoch as the copied loop does; give the weight and the loss that it reports."""
    model, optimizer = one_weight(strategy, rate)
    dataset = batched_dataset(labels(y), batch)
    losses = train_widely_copied(strategy, model, optimizer, loss, dataset, 1, distribute)
    return weight(model), losses[0]


def ours(strategy, y, loss, batch: int = 8, rate: float = 0.5) -> tuple[float, float]:
    model, optimizer = one_weight(strategy, rate)
    history = train(strategy, make_train_step(strategy, model, optimizer, loss), batched_dataset(labels(y), batch))
    return weight(model), history[0].loss


def scalar(y, predictions):
    return tf.reduce_mean(tf.square(y - predictions))


def mean_object():
    return keras.losses.MeanSquaredError()


def test_as_printed_it_crashes_in_its_first_step(fresh_processes):
    # Adam's variables come into being inside the traced step, which no strategy survives.
    finished = fresh_processes.run(AS_PRINTED, block=("tfdistedu",))
    assert finished.status == 1
    assert "You must feed a value for placeholder tensor" in finished.stderr
    assert "Epoch 0" not in finished.stdout


def test_with_its_optimizer_built_it_runs(fresh_processes):
    # So the crash is this one fault, and it hides the others.
    built = "tf.keras.optimizers.Adam()\n    optimizer.build(model.trainable_variables)"
    finished = fresh_processes.run(AS_PRINTED.replace("tf.keras.optimizers.Adam()", built), block=("tfdistedu",))
    assert finished.status == 0, finished.stderr
    assert finished.stdout.startswith("Epoch 0: Loss = 25.5\n")


def test_on_a_cpu_that_nobody_split_its_strategy_has_one_replica(fresh_processes):
    # So a first try on a laptop is no try at all, and shows none of what follows.
    code = "import tensorflow as tf\nprint(tf.distribute.MirroredStrategy().num_replicas_in_sync)\n"
    finished = fresh_processes.run(code, block=("tfdistedu",))
    assert (finished.status, finished.stdout) == (0, "1\n"), finished.stderr


@pytest.mark.parametrize(("distribute", "times"), [(False, 4), (True, 1)])
def test_every_replica_trains_on_every_example(strategy_with, distribute, times):
    strategy = strategy_with(4)
    with strategy.scope():
        trained_on = tf.Variable(
            tf.zeros(9),
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    def counting(y, predictions):
        trained_on.assign_add(tf.math.bincount(tf.cast(y[:, 0], tf.int32), minlength=9, dtype=tf.float32))
        return scalar(y, predictions)

    copied(strategy, EIGHT, counting, distribute=distribute)
    assert trained_on.read_value().numpy().tolist() == [0] + [times] * 8


def test_with_a_keras_loss_object_four_replicas_do_the_work_of_one(strategy_with):
    # The object divides by the replicas when one of them calls it: four quarters of the same thing. Nothing is wrong in
    # the result, which is why nobody notices that three replicas did nothing of use.
    assert copied(strategy_with(4), EIGHT, mean_object()) == (4.5, 25.5)
    assert copied(strategy_with(1), EIGHT, mean_object()) == (4.5, 25.5)


@pytest.mark.parametrize("distribute", [False, True])
def test_a_loss_that_is_already_a_mean_moves_the_weight_and_reports_a_loss_four_times_too_far(
    strategy_with, distribute
):
    assert copied(strategy_with(4), EIGHT, scalar, distribute=distribute) == (4 * 4.5, 4 * 25.5)
    assert copied(strategy_with(1), EIGHT, scalar) == (4.5, 25.5)
    assert ours(strategy_with(4), EIGHT, scalar) == (4.5, 25.5)


def test_a_loss_object_that_sums_is_four_times_too_large(strategy_with):
    # It does not scale itself. Distributed it would be right, as each example is then summed once.
    loss = keras.losses.MeanSquaredError(reduction="sum")
    assert copied(strategy_with(4), EIGHT, loss) == (4 * 36.0, 4 * 204.0)
    assert copied(strategy_with(4), EIGHT, loss, distribute=True) == (36.0, 204.0)
    assert ours(strategy_with(4), EIGHT, loss) == (36.0, 204.0)


def test_its_epoch_loss_lets_one_example_of_a_short_batch_weigh_as_much_as_four(strategy_with):
    # Batches 1, 2, 3, 4 and 8; a rate of 0, so that only the report is looked at. One device has this fault too.
    y = [1, 2, 3, 4, 8]
    for n_replicas in (1, 4):
        assert copied(strategy_with(n_replicas), y, mean_object(), batch=4, rate=0.0)[1] == (30 / 4 + 64) / 2
        assert ours(strategy_with(n_replicas), y, mean_object(), batch=4, rate=0.0)[1] == (30 + 64) / 5


def test_distributed_a_ragged_batch_becomes_a_mean_of_means(strategy_with):
    # On two replicas: 1, 1 | 4. The last example weighs as much as the first two together.
    assert copied(strategy_with(2), [1, 1, 4], mean_object(), distribute=True) == ((1 + 4) / 2, (1 + 16) / 2)
    for n_replicas in (1, 2):
        # A third is not exact in float32, which has 7 digits.
        assert ours(strategy_with(n_replicas), [1, 1, 4], mean_object()) == pytest.approx((6 / 3, 18 / 3), rel=1e-6)


def test_distributed_a_replica_without_examples_ends_a_loop_with_a_loss_object(strategy_with):
    # On four replicas: 1 | 1 | 4 | none. Of no examples Keras gives no mean but an empty list, which has no sum with
    # the others' numbers.
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have the same size and shape"):
        copied(strategy_with(4), [1, 1, 4], mean_object(), distribute=True)
    assert ours(strategy_with(4), [1, 1, 4], mean_object()) == pytest.approx((2, 6), rel=1e-6)


def test_distributed_a_replica_without_examples_makes_a_plain_mean_report_nan(strategy_with):
    w, loss = copied(strategy_with(4), [1, 1, 4], scalar, distribute=True)
    assert w == 1 + 1 + 4  # its own gradient, a product with no rows, is 0; the other faults stay
    assert np.isnan(loss)
    assert ours(strategy_with(4), [1, 1, 4], scalar) == pytest.approx((2, 6), rel=1e-6)


def run_once(strategy, change_loss=lambda loss: loss, change_gradients=lambda g: g, report="SUM"):
    """Take one step of the copied loop with a usual repair in it, on distributed data that divide evenly."""
    model, optimizer = one_weight(strategy)
    loss_object = mean_object()

    @tf.function
    def step(inputs):
        with tf.GradientTape() as tape:
            loss = change_loss(loss_object(inputs[1], model(inputs[0], training=True)))
        gradients = change_gradients(tape.gradient(loss, model.trainable_variables))
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    for inputs in strategy.experimental_distribute_dataset(batched_dataset(labels(EIGHT), 8)):
        loss = strategy.reduce(report, strategy.run(step, args=(inputs,)), axis=None)
    return weight(model), float(loss)


def test_distributed_without_further_repair_even_batches_are_right(strategy_with):
    # So what the next three tests find comes from the repairs alone.
    assert run_once(strategy_with(4)) == (4.5, 25.5)


def test_adding_gradients_up_before_the_optimizer_adds_them_up_twice(strategy_with):
    def add_up(gradients):
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)

    assert run_once(strategy_with(4), change_gradients=add_up)[0] == 4 * 4.5


def test_dividing_by_the_replicas_as_was_once_advised_divides_twice(strategy_with):
    assert run_once(strategy_with(4), change_loss=lambda loss: loss / 4) == (4.5 / 4, 25.5 / 4)


def test_reporting_a_mean_of_losses_that_are_scaled_already_reports_a_quarter(strategy_with):
    assert run_once(strategy_with(4), report="MEAN") == (4.5, 25.5 / 4)


def test_the_loss_that_the_demo_gives_to_the_copied_loop_does_not_scale_itself(strategy_with):
    # The demo's last row stands on this: with a loss that scaled itself, the weights would be one device's.
    y, logits = tf.constant([0, 1]), tf.zeros((2, 10))
    on_each = strategy_with(4).run(tf.function(lambda: mean_crossentropy(y, logits)))
    for value in strategy_with(4).experimental_local_results(on_each):
        assert float(value) == pytest.approx(np.log(10), rel=1e-6)  # not a quarter of it; float32 has 7 digits
