"""Your loop at work: real digits, on one device and on four replicas, float32, momentum. Both must train the same."""

import numpy as np

from tfdistedu.data.digits import load_digits
from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus
from tfdistedu.models import digits_mlp, keras

NEEDS = ["train"]
N_REPLICAS, BATCH, EPOCHS = 4, 60, 3  # 60 does not divide 1,408: the last batch is short
TOLERANCE = 1e-4  # float32: some hundred steps of rounding; a mistake is 1e-2 and more


def use(mine, say):
    """Train twice, and say what came out."""
    virtual_cpus(N_REPLICAS)
    digits = load_digits()
    alone, alone_loss = run(mine.train, tf.distribute.get_strategy(), digits)
    many, many_loss = run(mine.train, mirrored_strategy(N_REPLICAS), digits)
    pairs = zip(alone.get_weights(), many.get_weights(), strict=True)
    distance = max(float(np.abs(a - b).max()) for a, b in pairs)
    say(f"{EPOCHS} epochs of real digits with your loop, batches of {BATCH}, the last one short.")
    say(f"one device: loss {alone_loss[-1]:.4f}, accuracy {accuracy(alone, digits):.3f}", "  ")
    say(f"{N_REPLICAS} replicas: loss {many_loss[-1]:.4f}, accuracy {accuracy(many, digits):.3f}", "  ")
    say(f"furthest weight: {distance:.1e} (rounding in float32 explains {TOLERANCE:.0e})", "  ")
    return 0 if distance < TOLERANCE else 1


def run(train, strategy, digits):
    """Return the model that a strategy trains, and the losses."""
    with strategy.scope():
        model = digits_mlp(hidden=32)
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    dataset = tf.data.Dataset.from_tensor_slices((digits.x_train, digits.y_train)).batch(BATCH)

    def loss(y, logits):
        return keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True)

    return model, train(strategy, model, optimizer, loss, dataset, EPOCHS)


def accuracy(model, digits):
    """Return the share of test digits that are read right."""
    return float((np.argmax(model(digits.x_test), axis=1) == digits.y_test).mean())
