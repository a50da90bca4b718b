"""Two replicas, and a gradient that is to be clipped to length 1: by Keras's SGD, and by ours."""

# --8<-- [start:set-up]
from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus

virtual_cpus(2)
strategy = mirrored_strategy(2)


def move(optimizer_class):
    """Apply a gradient of 5 on each replica, clipped to norm 1; return how far the weight went."""
    with strategy.scope():
        weight = tf.Variable(0.0)
        optimizer = optimizer_class(learning_rate=1.0, clipnorm=1.0)
        optimizer.build([weight])

    def replica_step():
        optimizer.apply([tf.constant(5.0)], [weight])

    @tf.function
    def step():
        strategy.run(replica_step)

    step()
    return abs(float(weight.numpy()))


# --8<-- [end:set-up]

# --8<-- [start:compare]
import keras

from tfdistedu.step import optimizer as ours

print("keras.optimizers.SGD moves the weight by", move(keras.optimizers.SGD))
print("tfdistedu's SGD moves the weight by", move(ours.SGD))
# --8<-- [end:compare]
