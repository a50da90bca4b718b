"""What a worker does with the batches that a learner's function gives it: the digits, for real, in TensorFlow."""


def work(shares):
    """Train as one worker of a cluster; return weights, the examples of all workers, and the accuracy."""
    from tfdistedu.synchronous.multi_worker import multi_worker_strategy

    strategy = multi_worker_strategy(timeout=30.0)
    return train(strategy, shares[strategy.cluster_resolver.task_id])


def work_alone(batches):
    """Train as one device."""
    from tfdistedu.devices import tf

    return train(tf.distribute.get_strategy(), batches)


def train(strategy, epochs):
    """Train with this process's batches: one list of arrays of example numbers for each epoch."""
    import numpy as np

    from tfdistedu.data.digits import load_digits
    from tfdistedu.devices import tf
    from tfdistedu.models import digits_mlp, keras
    from tfdistedu.step.optimizer import SGD
    from tfdistedu.step.replica import make_train_step
    from tfdistedu.synchronous.loop import train as train_epochs

    digits = load_digits()
    with strategy.scope():
        model, optimizer = digits_mlp(hidden=32), SGD(0.1, momentum=0.9)
    step = make_train_step(
        strategy, model, optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), graph=True
    )
    seen = 0
    for batches in epochs:

        def examples_of(_, batches=batches):
            signature = (tf.TensorSpec((None, 64), tf.float32), tf.TensorSpec((None,), tf.int64))
            pairs = [(digits.x_train[batch], digits.y_train[batch].astype(np.int64)) for batch in batches]
            dataset = tf.data.Dataset.from_generator(lambda: iter(pairs), output_signature=signature)
            return dataset.apply(tf.data.experimental.assert_cardinality(len(pairs)))

        dataset = strategy.distribute_datasets_from_function(examples_of)
        seen += train_epochs(strategy, step, dataset)[0].examples
    accuracy = float((np.argmax(model(digits.x_test), axis=1) == digits.y_test).mean())
    return [np.array(weight) for weight in model.get_weights()], seen, accuracy
