"""Distributed training with TensorFlow, to read, to run and to copy.

A map of the package, from the bottom up. Each part may import only what stands above it in this list:

- `errors`       the errors that say what, where and what to do next
- `collectives`  all-reduce and its family as data: schedules, proofs, plain execution, pictures, price (NumPy only)
- `links`        how ranks talk: in memory, over TCP, through shared memory (no TensorFlow)
- `cluster`      real multi-process clusters on this machine
- `data`, `models`, `devices`   digits and batches, a few small models, virtual CPUs and our strategy factory
- `step`         the one training step, in parts: loss, reduce-clip-apply, accumulation, state, precision
- `synchronous`  the ways that keep step: the one loop, Keras `fit`
- `recipes`      standalone scripts to copy: they import TensorFlow and nothing from here
- `bench`        the same work done in several ways, as tables and JSON
- `cli`          the command `tfdistedu`, one file a command

Importing `tfdistedu` imports no TensorFlow.
"""

__version__ = "0.1.0"
