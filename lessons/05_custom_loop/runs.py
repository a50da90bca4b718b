"""What the page of this lesson shows: `make record` runs it, and tests run it again."""

from pathlib import Path

import numpy as np

from tfdistedu.course import small_training as small
from tfdistedu.course.lesson import load_lesson
from tfdistedu.course.mistakes import load_mistakes
from tfdistedu.course.subject import choose_subject, load_module
from tfdistedu.devices import mirrored_strategy, tf, virtual_cpus
from tfdistedu.models import keras

FOLDER = Path(__file__).parent


def copied():
    """Return the loop as it is copied."""
    (mistake,) = [each for each in load_mistakes(load_lesson(FOLDER)) if each.id == "as_widely_copied"]
    return mistake.function


def who_saw_what():
    """Return which examples each of two replicas works through in one step of four: as copied, and repaired."""
    lesson = load_lesson(FOLDER)
    loops = {"as copied": copied(), "repaired": choose_subject(lesson, "reference").function(lesson.exercise("train"))}
    lines = []
    for name, train in loops.items():
        seen = small.observe(train, small.TWO_REPLICAS)
        for replica in (0, 1):
            examples = sorted(example for (who, example) in seen.audit if who == replica)
            lines.append(f"{name:9}  replica {replica} works through examples {', '.join(map(str, examples))}")
    return "\n".join(lines) + "\n"


def counts():
    """Return what count_runs.py prints for two replicas and even batches; the exercise asks for another case."""
    found = load_module(FOLDER / "count_runs.py").count_runs(2, 8, 4, 1)
    return "".join(f"{part}: {number}\n" for part, number in found.items())


def update_ratio():
    """Return how much too large the first update of the copied loop is, on two replicas."""
    weights = small.observe(copied(), small.TWO_REPLICAS).weights[0]
    return f"{float(np.mean(weights / small.expected(small.TWO_REPLICAS)[0])):.1f} times"


def printed_loss(train, case):
    """Return the loss that a loop reports for its first epoch."""
    return f"{float(small.observe(train, case).losses[0]):.2f}"


def shown():
    """Run every line that the page shows."""
    lesson = load_lesson(FOLDER)
    for train in (copied(), choose_subject(lesson, "reference").function(lesson.exercise("train"))):
        small.run(train, small.TWO_REPLICAS)
    virtual_cpus(4)
    strategy = mirrored_strategy(2)
    with strategy.scope():
        model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    dataset = tf.data.Dataset.from_tensor_slices((np.ones((3, 3)), np.ones((3, 1)))).batch(2)
    sibling = load_module(FOLDER / "sibling.py")
    sibling.mean_loss(strategy, model, lambda y, p: tf.square(tf.cast(y, p.dtype) - p)[:, 0], dataset)


OUTPUTS = {"who_saw_what.txt": who_saw_what, "counts.txt": counts}
VALUES = {
    "update_ratio": update_ratio,
    "loss_one_device": lambda: printed_loss(copied(), small.ONE_DEVICE),
    "loss_two_replicas": lambda: printed_loss(copied(), small.TWO_REPLICAS),
}
TIMED = {}
