"""The pytest fixture `local_cluster`: real processes in your own tests, none of which outlives its test.

In a `conftest.py` at the root of your tests:

```python
pytest_plugins = ["tfdistedu.cluster.testing"]
```

In a test:

```python
def train_one_step():
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    ...
    return loss


def test_two_workers_agree(local_cluster):
    cluster = local_cluster(workers=2, deadline=30)
    losses = cluster.run(train_one_step)
    assert losses["worker:0"] == losses["worker:1"]
```

The functions of a test module travel to the tasks by value, so the tasks import neither the module nor pytest. What the
tasks print is in the captured output of a test that fails, under the names of the tasks.

The first cluster of a test process costs some seconds (TensorFlow's import in the server), each later one a tenth of a
second. With `pytest-xdist` each of its processes has a server of its own: some 600 MB.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tfdistedu.cluster.local import LocalCluster


@pytest.fixture
def local_cluster() -> Iterator[Callable[..., LocalCluster]]:
    """Make clusters that end with the test: `local_cluster(workers=2, ...)` takes what `LocalCluster` takes.

    Yields:
        A function from the arguments of `LocalCluster` to a cluster that has started.

    """
    with contextlib.ExitStack() as clusters:

        def make(*arguments: Any, **keywords: Any) -> LocalCluster:
            return clusters.enter_context(LocalCluster(*arguments, **keywords))

        yield make
