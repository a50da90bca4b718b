"""Your loop at work: two real workers with unequal data add up through TensorFlow, and end together.

The deadline is part of it: were your loop to hang here, it would end after a minute, and name who did not answer.
"""

from pathlib import Path

import numpy as np

from tfdistedu.cluster.local import LocalCluster
from tfdistedu.course.subject import load_module
from tfdistedu.data.digits import load_digits

NEEDS = ["train"]
DEADLINE = 60.0
TOLERANCE = 1e-12  # float64; the workers' sums are rounded in another order than one device's


def use(mine, say):
    """Train on two workers and on none, and compare."""
    real = load_module(Path(__file__).parent / "real.py")
    ink = load_digits().x_train.mean(axis=1).astype(np.float64)  # one number a digit: how much ink
    parts = [ink[:1000], ink[1000:]]
    inputs = [np.array_split(part, len(part) // 50) for part in parts]
    say(
        f"Two workers learn the mean ink of {len(ink)} digits; one has {len(inputs[0])} batches, "
        f"the other {len(inputs[1])}."
    )
    with LocalCluster(workers=2, deadline=DEADLINE, echo=False) as cluster:
        results = cluster.run(work, real.StrategyGroup, mine.train, inputs)
    weight, losses = alone(inputs)
    for task, (mine_weight, mine_losses, examples) in results.items():
        say(f"{task}: {len(mine_losses)} steps, weight {mine_weight:.6f}, {examples:g} examples", "  ")
    distance = max(abs(result[0] - weight) for result in results.values())
    say(f"one device: {len(losses)} steps, weight {weight:.6f}", "  ")
    say(f"furthest weight: {distance:.0e} (rounding explains {TOLERANCE:.0e})", "  ")
    same = all(len(result[1]) == len(losses) and result[2] == len(ink) for result in results.values())
    return 0 if same and distance < TOLERANCE else 1


def work(group, train, inputs):
    """Train as this worker; what it returns goes back as plain numbers."""
    here = group()
    weight, losses, examples = train(here, inputs[here.rank])
    return float(weight), [float(loss) for loss in losses], float(examples)


def alone(inputs):
    """Return weight and losses of one device, in NumPy."""
    weight, losses = 0.0, []
    for place in range(max(map(len, inputs))):
        x = np.concatenate([part[place] for part in inputs if place < len(part)])
        losses.append(float(np.mean((weight - x) ** 2)))
        weight -= 0.5 * float(np.mean(weight - x))
    return weight, losses
