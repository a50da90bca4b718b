"""How does every replica draw its own random numbers, and the same ones again in the next run?

Keras draws from a seed and a counter, which are variables, so each replica has the same ones, and the same mask:

    Keras        step 1:  replica 0: x.xx..x    replica 1: x.xx..x     one mask for four examples: less noise than
    here         step 1:  replica 0: x.xx..x    replica 1: .x.xxx.     one device would have had
    here         step 2:  replica 0: ..xx.xx    replica 1: xx..x.x

`ReplicaSeedGenerator` folds the replica's number into each seed it gives. The state is still the same on all replicas,
and moves on with each call. On one device the masks are Keras's. Keras's files leave the counter out, so that a loaded
model draws its first masks again; `ReplicaDropout` saves it.

The weights are not those of one device: another number of replicas draws other masks. What holds is that two runs
with the same seed and as many replicas are equal, and that the rate is right.

Cost: one hash a call. Left out: random layers other than dropout; write them with a `ReplicaSeedGenerator` as here.
"""

from __future__ import annotations

from typing import Any

from tfdistedu.errors import BadInput
from tfdistedu.quiet import import_tensorflow

tf = import_tensorflow()
import keras  # noqa: E402  (after the quiet import)


@keras.saving.register_keras_serializable(package="tfdistedu")
class ReplicaSeedGenerator(keras.random.SeedGenerator):
    """A seed generator whose seeds are other ones on each replica, and Keras's own on one device.

    Args:
        seed: The first state; `None` draws one.
        **kwargs: As for `keras.random.SeedGenerator`.

    Example:
        >>> generator = ReplicaSeedGenerator(seed=3)
        >>> [int(number) for number in generator.next()], [int(number) for number in generator.next()]
        ([3, 0], [3, 1])

    """

    def next(self, ordered: bool = True) -> tf.Tensor:
        """Give the next seed of this replica.

        Args:
            ordered: See `keras.random.SeedGenerator.next`.

        Returns:
            Two integers, shape [2].

        """
        seed = super().next(ordered)
        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync == 1:
            return seed
        own = tf.random.experimental.stateless_fold_in(tf.cast(seed, tf.int32), context.replica_id_in_sync_group)
        return tf.cast(own, seed.dtype)


@keras.saving.register_keras_serializable(package="tfdistedu")
class ReplicaDropout(keras.layers.Layer):
    """Dropout with another mask on each replica; with the same seed on one device it is `keras.layers.Dropout`.

    Args:
        rate: Share of the inputs that become 0, from 0 to below 1; the others are divided by `1 - rate`.
        seed: Seed of the masks; `None` draws one.
        noise_shape: Shape of the mask, broadcast against the inputs; `None` is the inputs' own.
        **kwargs: As for every `keras.layers.Layer`.

    Raises:
        BadInput: A rate outside of [0, 1).

    Example:
        >>> layer = ReplicaDropout(0.5, seed=1)
        >>> layer(tf.ones([2, 3])).numpy().tolist()              # not training: nothing happens
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    """

    def __init__(self, rate: float, seed: int | None = None, noise_shape: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise BadInput(f"ReplicaDropout(rate={rate!r}): rate is the share that becomes 0, from 0 to below 1.")
        self.rate = rate
        self.seed = seed
        self.noise_shape = None if noise_shape is None else tuple(noise_shape)
        self.seed_generator = ReplicaSeedGenerator(seed)
        self.supports_masking = True
        self.built = True

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Set some inputs to 0 in training, none otherwise.

        Args:
            inputs: Any shape.
            training: Whether to drop anything.

        Returns:
            The same shape.

        """
        if not training or self.rate == 0:
            return inputs
        return keras.random.dropout(inputs, self.rate, noise_shape=self.noise_shape, seed=self.seed_generator)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Give the shape of the output.

        Args:
            input_shape: Any shape.

        Returns:
            The same.

        """
        return input_shape

    def save_own_variables(self, store: Any) -> None:
        """Save the counter too.

        Args:
            store: A mapping from names to arrays.

        """
        super().save_own_variables(store)
        store["seed_state"] = self.seed_generator.state.value.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Load the counter too.

        Args:
            store: What `save_own_variables` filled.

        """
        self.seed_generator.state.assign(store["seed_state"])

    def get_config(self) -> dict[str, Any]:
        """Give what `from_config` makes an equal layer from.

        Returns:
            The arguments of the constructor.

        """
        return {**super().get_config(), "rate": self.rate, "seed": self.seed, "noise_shape": self.noise_shape}
