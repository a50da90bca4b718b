"""The caller does not need the arrays any more."""

from tfdistedu.collectives import execute, ring

ID = "changes_the_inputs"
EXERCISE = "all_reduce"
BELIEVES = "The caller does not need the arrays any more."
TRUE = "They are the caller's: tomorrow's momentum may stand in them."
QUESTION = "What stands in the inputs after the call?"
CAUGHT_BY = "inputs"
SEEN = "ours"


def all_reduce(arrays, trace):
    execute(ring(len(arrays)), arrays, trace=trace)
    return [array.copy() for array in arrays]
