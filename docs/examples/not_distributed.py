"""A batch that was never distributed: an error, and not four times the same work."""

# --8<-- [start:mistake]
import numpy as np

from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus
from tfdistedu.errors import BadInput
from tfdistedu.models import digits_mlp
from tfdistedu.step.optimizer import SGD
from tfdistedu.step.replica import make_train_step

virtual_cpus(4)
strategy = mirrored_strategy(4)
with strategy.scope():
    model, optimizer = digits_mlp(), SGD(0.1)
step = make_train_step(strategy, model, optimizer, "sparse_categorical_crossentropy")

batch = tf.constant(np.zeros((8, 64), np.float32)), tf.constant(np.zeros(8, np.int64))
try:
    step(batch)  # a plain batch: each replica would train on all 8 examples
except BadInput as error:
    print(error)
# --8<-- [end:mistake]
