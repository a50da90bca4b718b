"""How does a job that was killed in the middle end with the weights of one that was not?

    for each epoch, from where the checkpoint stands:
        its examples, in an order that only seed and epoch decide, without the batches that are done
        for each global batch:  step;  save every so often;  if a machine is to go: all save here, and leave

    no crash    | 0 1 2 3 | 4 5 6 7 | 8 9                  one line of batches, whatever happens
    crash       | 0 1 2 3 | 4 5 ##                         saved after batch 3; 4 and 5 are done again, from its weights
    resumed               | 4 5 6 7 | 8 9                  on as many workers as there are now

Three things make it exact: all variables, also the optimizer's, are saved and restored; the position in the data is
saved with them; and the data of an epoch is the same in each run. Then what was done after the checkpoint is done again
and gives the same numbers, so it counts once.

Cost: `every` sets it: saving often costs disk, saving rarely costs steps that are done twice. Left out: changing the
global batch on resume, which would be another training.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfdistedu.errors import BadInput, TfdisteduError
from tfdistedu.quiet import import_tensorflow
from tfdistedu.synchronous.checkpoint import Position, checkpoints, restore, save
from tfdistedu.synchronous.multi_worker import share_of_worker
from tfdistedu.synchronous.workers import Preemption, leave_together, naming_the_lost, tell_all

tf = import_tensorflow()


class Preempted(TfdisteduError):
    """All workers saved at one step and are to leave; a restarted job goes on from there (exit status 143)."""

    exit_status = 143


def train_resumably(
    strategy: tf.distribute.Strategy,
    step: Callable[[Any], tf.Tensor],
    examples_of: Callable[[int], tf.data.Dataset],
    global_batch: int,
    epochs: int,
    folder: str | Path,
    model: Any,
    optimizer: Any,
    every: int = 100,
    on_step: Callable[[Position, float], None] | None = None,
) -> Position:
    """Train from where the newest checkpoint stands, or from the start, to the end. All workers call it.

    Args:
        strategy: The strategy.
        step: From `make_train_step`, made for this strategy.
        examples_of: From the number of an epoch, 0 up, to its examples (not batches) in their order: the same in each
            run and on each worker. Shuffle with a seed made of yours and the epoch.
        global_batch: Examples in a global batch; the same in each run.
        epochs: Passes over the data in all, those before the crash among them.
        folder: Where checkpoints lie; all workers must see the same one.
        model: The Keras model.
        optimizer: Its optimizer.
        every: Global batches between checkpoints; one is written after each epoch, too.
        on_step: Called after each step with the position and the loss.

    Returns:
        The position at the end.

    Raises:
        Preempted: A worker was told to end; all saved at this step.
        BadInput: The checkpoint does not fit; numbers below 1.
        TfdisteduError: A worker is gone.

    """
    if epochs < 1 or every < 1:
        raise BadInput(f"train_resumably: epochs and every are at least 1, not {epochs} and {every}.")
    # Step 1: where do we stand? All look into the same folder, and say so if one sees another.
    position = Position()
    found = tell_all(strategy, len(checkpoints(folder)), "train_resumably")
    if any(found):
        position = restore(folder, strategy, model, optimizer)
    with Preemption() as preemption:
        while position.epoch < epochs:
            # Step 2: the rest of the epoch. Skipping comes before sharing out: it counts examples of all workers.
            rest = examples_of(position.epoch).skip(position.step * global_batch)
            for batch in share_of_worker(strategy, rest, global_batch):
                with naming_the_lost(strategy, f"step {position.step + 1} of epoch {position.epoch}"):
                    loss = float(step(batch))
                position = Position(position.epoch, position.step + 1)
                if on_step is not None:
                    on_step(position, loss)
                # Step 3: does a machine go? One knows it; all must leave after the same step.
                leaving = preemption.agreed(strategy)
                if leaving or position.step % every == 0:
                    save(folder, strategy, model, optimizer, position)
                if leaving:
                    raise Preempted(
                        f"{', '.join(leaving)} was told to end (SIGTERM). All saved after step {position.step} of "
                        f"epoch {position.epoch} in {folder}; start the job again to go on from there."
                    )
            # Step 4: the epoch is over. Its number, not its length, is what the next run needs.
            position = Position(position.epoch + 1, 0)
            save(folder, strategy, model, optimizer, position)
    leave_together(strategy)
    return position
