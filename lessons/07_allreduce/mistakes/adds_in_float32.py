"""float32 is precise enough for a sum."""

import numpy as np

from tfdistedu.collectives import execute, ring

ID = "adds_in_float32"
EXERCISE = "all_reduce"
BELIEVES = "float32 is precise enough for a sum."
TRUE = "The result has the type that was given, and its precision."
QUESTION = "Is there a number that float32 cannot hold?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    buffers = [array.astype(np.float32) for array in arrays]
    execute(ring(len(arrays)), buffers, trace=trace)
    return [buffer.astype(np.float64) for buffer in buffers]
