"""Who saw which example?

Give every example a number, let the replicas tell which numbers they were handed in one epoch, and count:

    audit(strategy, tf.data.Dataset.range(6).batch(4), 6)     each of 6 examples exactly once
        replica 0 saw 3: 0 1 4                                 a full batch   0 1 | 2 3
        replica 1 saw 3: 2 3 5                                 the last one     4 | 5

The numbers are read *inside* of the replica function, where training would see them. So the audit finds what no error
tells: a dataset that was not distributed (every replica sees everything), a remainder that was dropped, a shuffle that
was drawn anew on each shard.

Cost: one eager pass over the data. Left out: replicas of other processes; each process reports on its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfdistedu.data.batches import check_batched
from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()

SHOWN = 12  # numbers of a long list that are printed


@dataclass(frozen=True)
class Audit:
    """What one epoch showed: `replicas[r]` are the numbers that replica r saw, in order.

    `ok` is True when each of `n_examples` was seen exactly once, over all replicas.
    """

    n_examples: int
    replicas: tuple[tuple[int, ...], ...]

    @cached_property
    def times(self) -> Counter[int]:
        """How often each number was seen, over all replicas."""
        return Counter(number for seen in self.replicas for number in seen)

    @property
    def never(self) -> list[int]:
        """Numbers of `range(n_examples)` that nobody saw."""
        return [number for number in range(self.n_examples) if number not in self.times]

    @property
    def once(self) -> list[int]:
        """Numbers that were seen exactly once."""
        return sorted(number for number, times in self.times.items() if times == 1)

    @property
    def repeated(self) -> dict[int, int]:
        """Numbers that were seen more than once, and how often."""
        return {number: times for number, times in sorted(self.times.items()) if times > 1}

    @property
    def unknown(self) -> list[int]:
        """Numbers that were seen and are outside of `range(n_examples)`."""
        return sorted(number for number in self.times if not 0 <= number < self.n_examples)

    @property
    def ok(self) -> bool:
        """Whether each example was seen exactly once."""
        return not (self.never or self.repeated or self.unknown)

    def to_json(self) -> dict[str, Any]:
        """Give plain lists and numbers.

        Returns:
            `ok`, `n_examples`, `once` (a number), `never`, `repeated` (pairs `[number, times]`), `unknown`, `replicas`.

        """
        return {
            "ok": self.ok,
            "n_examples": self.n_examples,
            "once": len(self.once),
            "never": self.never,
            "repeated": [[number, times] for number, times in self.repeated.items()],
            "unknown": self.unknown,
            "replicas": [list(seen) for seen in self.replicas],
        }

    def __str__(self) -> str:
        if self.ok:
            lines = [f"ok: each of {self.n_examples} examples was seen exactly once"]
        else:
            lines = [f"not ok: of {self.n_examples} examples {len(set(self.once) - set(self.unknown))} were seen once"]
        if self.repeated:
            often = ", ".join(f"{how_many} {times} times" for times, how_many in sorted(self._how_often().items()))
            lines.append(f"  more than once: {often}: {_shortened(self.repeated)}")
        if self.never:
            lines.append(f"  never: {len(self.never)}: {_shortened(self.never)}")
        if self.unknown:
            lines.append(f"  not in 0..{self.n_examples - 1}: {_shortened(self.unknown)}")
        lines += [f"  replica {r} saw {len(seen)}: {_shortened(seen)}" for r, seen in enumerate(self.replicas)]
        return "\n".join(line.rstrip(": ") for line in lines)

    def _how_often(self) -> Counter[int]:
        return Counter(self.repeated.values())


def audit(
    strategy: tf.distribute.Strategy,
    dataset: Any,
    n_examples: int,
    number_of: Callable[[Any], Any] | None = None,
    steps: int | None = None,
    distribute: bool = True,
) -> Audit:
    """Iterate once over a dataset as a strategy's replicas would, and report who saw which example.

    Args:
        strategy: Any strategy; `tf.distribute.get_strategy()` is one device.
        dataset: A `tf.data.Dataset` of batches, which is distributed here; one that is distributed already; or a
            function of an `InputContext`, as for `strategy.distribute_datasets_from_function`.
        n_examples: How many there are: they are numbered from 0 to `n_examples - 1`.
        number_of: Gives the numbers, shape [replica_batch], of what a replica was handed; `None` takes its first part.
        steps: Global batches to look at; `None` is all, needed for a dataset that never ends.
        distribute: `False` hands each batch of a plain dataset to every replica, as a loop that forgot to
            distribute does.

    Returns:
        The report; `str(report)` is for people, `report.ok` for programs.

    Raises:
        BadInput: No dataset, one that never ends (and no `steps`), or no whole numbers in it.

    Example:
        >>> report = audit(tf.distribute.get_strategy(), tf.data.Dataset.range(5).batch(2, drop_remainder=True), 5)
        >>> report.ok, report.never
        (False, [4])

    """
    in_this_process = strategy.experimental_local_results(strategy.run(lambda: tf.constant(0)))
    seen: list[list[int]] = [[] for _ in in_this_process]
    batches = _batches(strategy, dataset, steps, distribute)
    for step, batch in enumerate(batches):
        if step == steps:
            break
        numbers = strategy.run(lambda part: tf.identity(_numbers(part, number_of)), args=(batch,))
        for replica, part in enumerate(strategy.experimental_local_results(numbers)):
            seen[replica] += [int(number) for number in part.numpy()]
    return Audit(n_examples, tuple(tuple(numbers) for numbers in seen))


def with_numbers(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Number the elements of a dataset, before it is shuffled and batched.

    Args:
        dataset: Any dataset of single examples.

    Returns:
        The same dataset, of pairs `(number, example)`.

    Example:
        >>> [int(number) for number, _ in with_numbers(tf.data.Dataset.from_tensor_slices(["a", "b"]))]
        [0, 1]

    """
    return dataset.enumerate()


def _batches(strategy: tf.distribute.Strategy, dataset: Any, steps: int | None, distribute: bool) -> Any:
    is_plain = isinstance(dataset, tf.data.Dataset)
    if not is_plain and not isinstance(dataset, tf.distribute.DistributedDataset):
        if not callable(dataset):
            raise BadInput(
                f"audit: the dataset must be a tf.data.Dataset of batches, a distributed one, or a function of an "
                f"InputContext, not a {type(dataset).__name__}."
            )
        dataset = strategy.distribute_datasets_from_function(dataset)
    cardinality = dataset.cardinality() if is_plain else dataset.cardinality  # TensorFlow has it both ways
    if steps is None and int(cardinality) == tf.data.INFINITE_CARDINALITY:
        raise BadInput("audit: the dataset never ends; give steps=, the number of global batches to look at.")
    if is_plain and distribute:
        check_batched(dataset)
        return strategy.experimental_distribute_dataset(dataset)
    return dataset


def _numbers(part: Any, number_of: Callable[[Any], Any] | None) -> tf.Tensor:
    numbers = tf.convert_to_tensor(number_of(part) if number_of else tf.nest.flatten(part)[0])
    if not numbers.dtype.is_integer or numbers.shape.rank != 1:
        raise BadInput(
            f"audit: needs whole numbers of shape [replica_batch], and got {numbers.dtype.name} of shape "
            f"{numbers.shape}. Number the examples first (with_numbers), or say where they are with number_of=."
        )
    return numbers


def _shortened(numbers: Any) -> str:
    numbers = list(numbers)
    return " ".join(map(str, numbers[:SHOWN])) + (f" ... ({len(numbers)})" if len(numbers) > SHOWN else "")
