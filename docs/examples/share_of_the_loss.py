"""Ten examples on four replicas: the mean of the replicas' means is not the mean."""

# --8<-- [start:batch]
import numpy as np

from tfdistedu.data.batches import split_on_replicas

losses = np.arange(1.0, 11.0)  # what each of the ten examples costs: 1, 2, ..., 10
replica_batches = [part for (part,) in split_on_replicas([losses], n_replicas=4)]
print("on the replicas:", [part.tolist() for part in replica_batches])
print("one device:", losses.mean())
# --8<-- [end:batch]

# --8<-- [start:wrong]
means = [part.mean() for part in replica_batches]
print("mean of means:", np.mean(means))
# --8<-- [end:wrong]

# --8<-- [start:right]
shares = [part.sum() / len(losses) for part in replica_batches]
print("sum of shares:", sum(shares))
# --8<-- [end:right]
