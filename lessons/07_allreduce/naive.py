"""The naive version of an all-reduce, to be shown and to be compared with."""


# --8<-- [start:naive]
def gather_and_broadcast(arrays):
    """Send everything to rank 0, add it up there, and send the sum back."""
    n_messages = 0
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
        n_messages += 1  # rank r -> rank 0
    results = [total]
    for _ in arrays[1:]:
        results.append(total.copy())
        n_messages += 1  # rank 0 -> rank r
    return results, n_messages


# --8<-- [end:naive]
