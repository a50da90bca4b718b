"""Gradients are shared by themselves."""

ID = "local_only"
EXERCISE = "all_reduce"
BELIEVES = "Gradients are shared by themselves."
TRUE = "Nothing is shared unless it is sent."
QUESTION = "Does anybody talk to anybody?"
CAUGHT_BY = "values"
SEEN = "ours"


def all_reduce(arrays, trace):
    return [array.copy() for array in arrays]
