"""How is training saved with four replicas and resumed with two, or with one, as if nothing had happened?

All replicas hold the same weights, so a file needs one copy, and nothing of the strategy. What else an exact
continuation needs is in Keras's variables: the optimizer's slots and count of updates, moving statistics of batch
normalisation, counters of dropout, the scale of the loss. One thing is not: where in the data we are.

    4 replicas:  step 1, step 2, save  ->  checkpoint-000001.npz  ->  2 replicas: restore, step 3, step 4
                                           {name, shape, dtype} and numbers of each variable; epoch and step

A file is whole or not there: it is written under another name, flushed to the disk, and renamed, which is one atomic
act. When it is read its checksums are verified, then names, shapes and types are held against model and optimizer,
and only then is the first variable assigned. A damaged newest file is passed over, with a warning, for the one before.

Several workers hold the same, too: all call `save` and `restore`, the chief writes, and all hear how it went. The
folder must be one that all see. Who calls it alone (`if chief: save(...)`) waits for the others until the timeout of
the strategy's collectives, and is told so.

Cost: all variables once in memory and on disk. Left out: what waits in the
accumulators of `step.accumulate` (flush first); batch normalisation that is not synchronised (replica 0's is saved).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfdistedu.errors import BadInput, MachineCannot, TfdisteduError
from tfdistedu.quiet import import_tensorflow
from tfdistedu.step.parts import check_optimizer, check_variables
from tfdistedu.synchronous.workers import is_chief, task_names, tell_all

tf = import_tensorflow()
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_NAME = re.compile(r"checkpoint-(\d{6,})\.npz")


class Position(NamedTuple):
    """Where in the data training stands: `epoch` passes are complete, and `step` global batches of the next one."""

    epoch: int = 0
    step: int = 0

    def rest_of(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Give the part of the current epoch that is still to come.

        Args:
            dataset: Global batches, in the same order in each pass.

        Returns:
            The dataset without its first `step` batches.

        """
        return dataset.skip(self.step)


def save(
    folder: str | Path, strategy: tf.distribute.Strategy, model: Any, optimizer: Any, position: Position, keep: int = 2
) -> Path:
    """Write a checkpoint, whole or not at all.

    Args:
        folder: Where checkpoints lie; made if need be.
        strategy: The strategy that trains.
        model: Its Keras model.
        optimizer: Its Keras optimizer.
        position: Where in the data training stands.
        keep: How many checkpoints to keep, the newest; at least 1. With 2 there is one to fall back to.

    Returns:
        The file.

    Raises:
        BadInput: `keep` below 1; model or optimizer of another strategy; another save is writing into the folder.
        MachineCannot: The folder cannot be written, or the disk is full; the checkpoints before are untouched.
        DeadlineExceeded: Not all workers called it.
        TfdisteduError: The chief could not write, or a worker is gone.

    """
    if keep < 1:
        raise BadInput(f"save: keep is the number of checkpoints to keep, at least 1, not {keep}.")
    folder = Path(folder)
    variables = _variables(strategy, model, optimizer)
    position = Position(*map(int, position))
    # Step 1: one copy of each variable. All replicas hold the same. All workers read: some variables need them all.
    arrays = {f"variable-{index}": variable.value.numpy() for index, variable in enumerate(variables)}
    manifest = {"format": 1, "position": position, "variables": [_describe(variable) for variable in variables]}
    arrays["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    # Step 2: the chief writes. Then all hear its number, or that it failed: nobody trains on alone.
    number, failure = 0, None
    if is_chief(strategy):
        try:
            number = _write(folder, arrays, keep)
        except TfdisteduError as error:
            number, failure = -1, error
    number = sum(tell_all(strategy, number, "save"))
    if failure is not None:
        raise failure
    if number < 0:
        raise TfdisteduError(
            f"save: {task_names(strategy)[0]} could not write a checkpoint in {folder}; its error says why."
        )
    return _path(folder, number)


def _write(folder: Path, arrays: dict[str, np.ndarray], keep: int) -> int:
    """Write a file whole or not at all; return its number."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone_in(folder):
            # Step 1: write under another name. Whoever looks meanwhile finds the checkpoint before.
            existing = checkpoints(folder)
            number = _number(existing[-1]) + 1 if existing else 1
            path = _path(folder, number)
            unfinished = folder / f"{path.name}.unfinished"
            try:
                with open(unfinished, "wb") as file:
                    np.savez(file, **arrays)
                    file.flush()
                    os.fsync(file.fileno())
                # Step 2: rename. From here on it exists, whole.
                os.replace(unfinished, path)
            finally:
                unfinished.unlink(missing_ok=True)  # half a file on a full disk helps nobody
            for old in [*checkpoints(folder)[:-keep], *folder.glob("checkpoint-*.npz.unfinished")]:
                old.unlink()
    except OSError as error:
        raise MachineCannot(
            f"save: cannot write a checkpoint in {folder} ({error.strerror or error}). The checkpoints that were there "
            "are untouched. Make room or name another folder, and save again."
        ) from error
    return number


def _path(folder: Path, number: int) -> Path:
    return folder / f"checkpoint-{number:06d}.npz"


def _number(path: Path) -> int:
    return int(_NAME.fullmatch(path.name)[1])


def restore(folder: str | Path, strategy: tf.distribute.Strategy, model: Any, optimizer: Any) -> Position:
    """Load the newest checkpoint that is whole, into a model and an optimizer on any number of replicas.

    Args:
        folder: Where `save` wrote.
        strategy: The strategy that is to train.
        model: A model of the same architecture, made in its scope.
        optimizer: An optimizer of the same kind, made in its scope.

    Returns:
        Where in the data training stood.

    Raises:
        BadInput: No checkpoint in the folder; or the newest whole one does not fit: the message lists what is missing;
            or workers see different folders.
        DeadlineExceeded: Not all workers called it.
        TfdisteduError: Every checkpoint is damaged.

    """
    folder = Path(folder)
    variables = _variables(strategy, model, optimizer)
    # Step 1: read the newest that is whole. All workers must have found the same one, before any goes on.
    whole, damaged = _newest_whole(folder)
    numbers = tell_all(strategy, 0 if whole is None else _number(whole[0]), "restore")
    if len(set(numbers)) > 1:
        seen = ", ".join(
            f"{task} finds {f'number {number}' if number else 'none'}"
            for task, number in zip(task_names(strategy), numbers, strict=False)
        )
        raise BadInput(f"restore: workers find different checkpoints in {folder}: {seen}. Give all one shared folder.")
    if whole is None and damaged:
        raise TfdisteduError(f"restore: every checkpoint in {folder} is damaged: {'; '.join(damaged)}. Start anew.")
    if whole is None:
        raise BadInput(f"restore: no checkpoint in {folder}; `save` writes files named checkpoint-000001.npz there.")
    path, manifest, arrays = whole
    if damaged:
        warnings.warn(f"restore: passed over damaged {', '.join(damaged)}; loaded {path.name}.", stacklevel=2)
    # Step 2: hold it against what is there. Half a restore would train on without a word.
    _check_fits(path, manifest["variables"], [_describe(variable) for variable in variables])
    # Step 3: assign, in cross-replica context: every replica gets the value.
    with strategy.scope():
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)
    return Position(*manifest["position"])


def _newest_whole(folder: Path) -> tuple[tuple[Path, dict[str, Any], list[np.ndarray]] | None, list[str]]:
    """Read the newest checkpoint that is whole, which verifies its checksums; say which newer ones are damaged."""
    damaged = []
    for path in reversed(checkpoints(folder)):
        try:
            return (path, *_read(path)), damaged
        except Exception as reason:  # what a damaged file raises depends on which byte it is
            damaged.append(f"{path.name} ({type(reason).__name__}: {reason})")
    return None, damaged


def checkpoints(folder: str | Path) -> list[Path]:
    """List the checkpoints of a folder, the newest last.

    Args:
        folder: Where `save` wrote; may be missing.

    Returns:
        Their paths; files that were not finished are not among them.

    """
    return sorted(
        (path for path in Path(folder).glob("checkpoint-*.npz") if _NAME.fullmatch(path.name)),
        key=_number,
    )


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Refuse a second save into the same folder at the same time: each would write into, and remove, the other's file.

    The lock is the folder's own and goes with the process, however that ends.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"save: another save is writing into {folder}; give each run a folder of its own.") from None
        except OSError:  # a file system that locks no folders, as NFS: saving goes on as before
            pass
        yield
    finally:
        os.close(descriptor)


def _variables(strategy: tf.distribute.Strategy, model: Any, optimizer: Any) -> list[Any]:
    check_variables(strategy, model.variables, "model")
    check_optimizer(strategy, optimizer, model.trainable_variables)  # makes its slots, if it has none yet
    return [*model.variables, *optimizer.variables]


def _describe(variable: Any) -> list[Any]:
    """Give name, shape and dtype; the name without the numbers that Keras adds to a second "dense" in one process."""
    name = "/".join(re.sub(r"_\d+(?=_|$)", "", part) for part in variable.path.split("/"))
    return [name, list(variable.shape), tf.as_dtype(variable.dtype).name]


def _read(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    with np.load(path, allow_pickle=False) as file:  # a zip archive, which holds each array's checksum against it
        manifest = json.loads(bytes(file["manifest"]))
        arrays = []
        for index, (_, shape, dtype) in enumerate(manifest["variables"]):
            array = file[f"variable-{index}"]
            if array.dtype.kind == "V":  # NumPy does not know bfloat16 by name
                array = array.view(tf.as_dtype(dtype).as_numpy_dtype)
            arrays.append(array.reshape(shape))
    return manifest, arrays


def _check_fits(path: Path, saved: list[list[Any]], wanted: list[list[Any]]) -> None:
    if saved == wanted:
        return
    in_file, here = (Counter(map(_say, descriptions)) for descriptions in (saved, wanted))
    missing, unused = (sorted((a - b).elements()) for a, b in ((here, in_file), (in_file, here)))
    raise BadInput(
        f"restore: {path} does not fit this model and optimizer, and nothing was loaded."
        + (f" Not in the file: {', '.join(missing)}." if missing else "")
        + (f" In the file and not here: {', '.join(unused)}." if unused else "")
        + (" The same variables, in another order." if not missing and not unused else "")
        + " Make model and optimizer as they were when it was saved."
    )


def _say(description: list[Any]) -> str:
    name, shape, dtype = description
    return f"{name} {dtype}{shape}"
