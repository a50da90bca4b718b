"""The first program: real digits, four replicas, the one loop."""

# --8<-- [start:devices]
from tfdistedu.devices import mirrored_strategy, virtual_cpus

virtual_cpus(4)
strategy = mirrored_strategy(4)
print(strategy.num_replicas_in_sync, "replicas")
# --8<-- [end:devices]

# --8<-- [start:data]
from tfdistedu.data.batches import batched_dataset
from tfdistedu.data.digits import load_digits

digits = load_digits()
train_set = batched_dataset((digits.x_train, digits.y_train), batch_size=64, shuffle_seed=0)
test_set = batched_dataset((digits.x_test, digits.y_test), batch_size=64)
# --8<-- [end:data]

# --8<-- [start:model]
import keras

from tfdistedu.models import digits_mlp
from tfdistedu.step.optimizer import SGD

with strategy.scope():
    model = digits_mlp()
    optimizer = SGD(0.1, momentum=0.9)
    accuracy = keras.metrics.SparseCategoricalAccuracy()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
# --8<-- [end:model]

# --8<-- [start:train]
from tfdistedu.step.replica import make_train_step
from tfdistedu.synchronous.loop import evaluate, train

step = make_train_step(strategy, model, optimizer, loss)
for epoch in train(strategy, step, train_set, epochs=3):
    print(f"epoch {epoch.number}: loss {epoch.loss:.2f}, {epoch.examples} examples")

result = evaluate(strategy, model, test_set, [accuracy])
print(f"test accuracy {result['sparse_categorical_accuracy']:.2f} on {len(digits.x_test)} examples")
# --8<-- [end:train]
