"""Where does an input for several workers first go wrong? At a step, a worker, an example.

The idea: ask the learner's function for every worker, and hold the answers beside each other, as no single worker can.

    as many steps       worker 2 has 3 batches, and worker 0 has 4: it would wait
    each once           example 5 is seen by worker 0 in step 1 and by worker 2 in step 0; example 7 by nobody
    one device's        step 1 of 3 workers has other examples than step 1 of one
    shared evenly       worker 0 has 6 examples of step 0, and worker 1 has none: one works, and two look on
    shuffled anew       epoch 1 has the order of epoch 0; another seed changes nothing; examples keep their neighbours

Costs: some hundred small arrays. Leaves out: what is done with the examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tfdistedu.course.wrong import Wrong

SEED = 7
_EPOCHS = 4  # two would let an order through that depends on whether the epoch is odd


class Case(NamedTuple):
    """One sharing out: `n_workers`, `n_examples`, `global_batch`."""

    n_workers: int
    n_examples: int
    global_batch: int

    def __str__(self) -> str:
        return f"{self.n_workers} worker(s), {self.n_examples} examples, global batch {self.global_batch}"

    @property
    def sizes(self) -> list[int]:
        """The sizes of the global batches."""
        starts = range(0, self.n_examples, self.global_batch)
        return [min(self.global_batch, self.n_examples - start) for start in starts]


def ask(function: Callable[..., Any], case: Case, epoch: int = 0, seed: int = SEED) -> list[list[list[int]]]:
    """Ask for all workers' batches.

    Args:
        function: The learner's `batches_of_worker`.
        case: What is shared out.
        epoch: The number of the pass.
        seed: The seed of the training.

    Returns:
        `result[worker][step]`: numbers of examples.

    Raises:
        Wrong: A worker's answer is no list of integer arrays, or names an example that there is not.

    """
    workers = []
    for worker in range(case.n_workers):
        call = f"batches_of_worker({worker}, {case.n_workers}, {case.n_examples}, {case.global_batch}, {seed}, {epoch})"
        came = function(worker, case.n_workers, case.n_examples, case.global_batch, seed, epoch)
        try:
            batches = [np.asarray(batch).reshape(-1) for batch in came]
            wrong = next((b for b in batches if b.size and (b.dtype.kind not in "iu" or b.min() < 0)), None)
            wrong = (
                wrong
                if wrong is not None
                else next((b for b in batches if b.size and b.max() >= case.n_examples), None)
            )
        except (TypeError, ValueError):
            batches, wrong = [], came
        if wrong is not None or came is None:
            raise Wrong(
                f"worker {worker} returns no list of arrays of example numbers.",
                called=call,
                came="None. Is there a return?" if came is None else repr(wrong)[:80],
                expected=f"one integer array for each step, with numbers from 0 to {case.n_examples - 1}",
                why="a batch is named by the examples in it",
            )
        workers.append([batch.tolist() for batch in batches])
    return workers


def check_same_steps(function: Callable[..., Any], case: Case) -> None:
    """Check that all workers make the same number of steps, and that it is one device's.

    Args:
        function: The learner's.
        case: What is shared out.

    Raises:
        Wrong: They do not.

    """
    workers = ask(function, case)
    steps = [len(batches) for batches in workers]
    if len(set(steps)) > 1:
        fewest, most = int(np.argmin(steps)), int(np.argmax(steps))
        raise Wrong(
            f"{case}: worker {fewest} has {steps[fewest]} batches, and worker {most} has {steps[most]}.",
            called=f"all workers of {case}",
            came=f"{steps} batches",
            expected=f"{len(case.sizes)} batches each",
            why="in each step all workers add up their gradients: who leaves early makes the others wait for ever",
            symptom="workers do not end together",
        )
    if steps[0] != len(case.sizes):
        raise Wrong(
            f"{case}: an epoch has {steps[0]} steps.",
            called=f"all workers of {case}",
            came=f"{steps[0]} batches each",
            expected=f"{len(case.sizes)}, as on one device",
            why="a step takes one global batch from all workers together, and the short last one is a step too",
        )


def check_once(function: Callable[..., Any], case: Case) -> None:
    """Check that each example comes exactly once.

    Args:
        function: The learner's.
        case: What is shared out.

    Raises:
        Wrong: The message names the first example that comes more than once, or never, and who sees it.

    """
    places: dict[int, list[str]] = {example: [] for example in range(case.n_examples)}
    for worker, batches in enumerate(ask(function, case)):
        for step, batch in enumerate(batches):
            for example in batch:
                places[example].append(f"worker {worker} in step {step}")
    never = [example for example, seen in places.items() if not seen]
    twice = [example for example, seen in places.items() if len(seen) > 1]
    if not never and not twice:
        return
    first = min(never + twice)
    told = f"seen {len(places[first])} times" if places[first] else "seen by nobody"
    raise Wrong(
        f"{case}: example {first} is {told}.",
        called=f"all workers of {case}",
        came=f"{' and '.join(places[first]) or 'in no batch'}; {len(twice)} more than once, {len(never)} never",
        expected="each example once, by one worker",
        why="an epoch is one pass over the data, however many workers share it",
        symptom="examples are lost"
        if not twice
        else "each worker sees everything"
        if all(len(seen) == case.n_workers for seen in places.values())
        else "",
    )


def check_global_batches(function: Callable[..., Any], case: Case) -> None:
    """Check that each step has, over all workers, the examples of one device's step.

    Args:
        function: The learner's.
        case: What is shared out.

    Raises:
        Wrong: The message names the first step that differs.

    """
    workers, alone = ask(function, case), ask(function, case._replace(n_workers=1))[0]
    for step, size in enumerate(case.sizes):
        together = sorted(example for batches in workers for example in batches[step])
        if len(together) != size or together != sorted(alone[step]):
            raise Wrong(
                f"{case}: step {step} is not one device's.",
                called=f"all workers of {case}, and one worker alone",
                came=f"examples {together} together",
                expected=f"{sorted(alone[step])}, those of one worker alone"
                if len(alone[step]) == size
                else f"{size} examples",
                why="gradients of other examples are another step: several workers would train something else",
            )


def check_shared_evenly(function: Callable[..., Any], case: Case) -> None:
    """Check that in each step no worker has two examples more than another.

    Args:
        function: The learner's.
        case: What is shared out.

    Raises:
        Wrong: The message names the first step, and who has most and least.

    """
    workers = ask(function, case)
    for step in range(len(case.sizes)):
        sizes = [len(batches[step]) for batches in workers]
        if max(sizes) - min(sizes) > 1:
            most, least = int(np.argmax(sizes)), int(np.argmin(sizes))
            raise Wrong(
                f"{case}: in step {step} worker {most} has {sizes[most]} examples, worker {least} has {sizes[least]}.",
                called=f"all workers of {case}",
                came=f"{sizes} examples",
                expected="numbers that differ by one at most",
                why="a step takes as long as its slowest worker: who has most makes the others wait",
                symptom="one worker does the work of others",
            )


def check_shuffled_anew(function: Callable[..., Any], case: Case) -> None:
    """Check that seed and epoch make the order: another one for each, and the same when asked again.

    Args:
        function: The learner's.
        case: What is shared out.

    Raises:
        Wrong: It is not.

    """
    epochs = [ask(function, case, epoch) for epoch in range(_EPOCHS)]
    if epochs[0] != ask(function, case):
        raise Wrong(
            f"{case}: asked twice for epoch 0, it gives two orders.",
            called="the same call, twice",
            came="other examples",
            expected="the same",
            why="after a crash the epoch is begun again, and each worker has to find the place where it stood",
        )
    for later in range(1, _EPOCHS):
        if epochs[later] in epochs[:later]:
            earlier = epochs.index(epochs[later])
            raise Wrong(
                f"{case}: epoch {later} has the order of epoch {earlier}.",
                called=f"epoch {earlier} and epoch {later}",
                came="the same order",
                expected="another one",
                why="batches that are the same in each epoch are learned together, with all their chance",
                symptom="shuffled once" if (earlier, later) == (0, 1) else "",
            )
    if epochs[0] == ask(function, case, seed=SEED + 1):
        raise Wrong(
            f"{case}: seed {SEED + 1} has the order of seed {SEED}.",
            called=f"epoch 0 with seed {SEED}, and with seed {SEED + 1}",
            came="the same order",
            expected="another one",
            why="a result that one seed gives by chance is seen as chance only with another seed",
        )
    neighbours = [_neighbours(function, case, epoch) for epoch in range(_EPOCHS)]
    if all(each == neighbours[0] for each in neighbours[1:]):
        raise Wrong(
            f"{case}: examples move, and keep their neighbours, in {_EPOCHS} epochs.",
            called=f"epochs 0 to {_EPOCHS - 1}",
            came="one order, begun elsewhere",
            expected="another order",
            why="examples that lie together in the data would be learned together in each epoch",
        )


def _neighbours(function: Callable[..., Any], case: Case, epoch: int) -> list[int]:
    """Begin one worker's order, which goes in a circle, with example 0."""
    order = [example for batch in ask(function, case._replace(n_workers=1), epoch)[0] for example in batch]
    at = order.index(0)
    return order[at:] + order[:at]


def probe_input(function: Callable[..., Any], case: Case) -> Any:
    """Tell what a function does in one case, whatever order it draws.

    Args:
        function: The learner's.
        case: What is shared out.

    Returns:
        Batch sizes by worker, how often examples come, which steps are one device's, and which epochs are alike; or the
        name of the error.

    """
    try:
        workers, again = ask(function, case), ask(function, case)
        alone, second = ask(function, case._replace(n_workers=1))[0], ask(function, case, epoch=1)
    except Exception as error:  # what is wrong with it is a fingerprint too
        return type(error).__name__
    seen = [example for batches in workers for batch in batches for example in batch]
    counts = sorted(seen.count(example) for example in range(case.n_examples))
    steps = max(map(len, workers))
    same = [
        sorted(e for batches in workers for e in (batches[step] if step < len(batches) else []))
        == sorted(alone[step] if step < len(alone) else [])
        for step in range(steps)
    ]
    once = set(counts) == {1}
    return [
        [[len(batch) for batch in batches] for batches in workers],
        counts if once or workers == again else "drawn",
        same if workers == again else "drawn",
        workers == again,
        workers == second,
    ]
