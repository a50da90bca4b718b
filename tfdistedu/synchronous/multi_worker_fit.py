"""How is Keras 3's `fit` made to work on several workers?

As shipped it stops in two places under `MultiWorkerMirroredStrategy`:

    before the first step    the symbolic build takes a mean over a batch that is spread over workers
    after each step          the logs, scalars, are averaged "over axis 0", which a scalar has not
                             ("Invalid reduction dimension 0 for input with 0 dimensions")

The mix-in skips the one and gives each log an axis. Then `fit`, `evaluate` and `predict` run, and give one device's
numbers where `fit` does so under `MirroredStrategy`: batches that divide evenly (`tfdistedu.synchronous.keras_fit`).

    class Model(FitsOnWorkers, keras.Sequential): ...

Cost: none. Left out: a model whose variables do not exist before `fit` (give it an `Input`). Each worker predicts
everything, in order. With `tf_keras` none of this is needed.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()


class FitsOnWorkers:
    """A mix-in for Keras 3 models, before the class that it goes with."""

    def _maybe_symbolic_build(self, *arguments: Any, **keywords: Any) -> None:
        """Do not: the variables are there already, made in the strategy's scope."""

    def train_step(self, *arguments: Any, **keywords: Any) -> dict[str, tf.Tensor]:
        """Do Keras's step, and give each log an axis.

        Args:
            *arguments: As for Keras's.
            **keywords: As for Keras's.

        Returns:
            The logs, of shape [1] each.

        """
        return _with_an_axis(super().train_step(*arguments, **keywords))

    def test_step(self, *arguments: Any, **keywords: Any) -> dict[str, tf.Tensor]:
        """Do Keras's step, and give each log an axis.

        Args:
            *arguments: As for Keras's.
            **keywords: As for Keras's.

        Returns:
            The logs, of shape [1] each.

        """
        return _with_an_axis(super().test_step(*arguments, **keywords))


def _with_an_axis(logs: dict[str, Any]) -> dict[str, tf.Tensor]:
    return {name: tf.reshape(value, [1]) for name, value in logs.items()}
