"""What is left of a training that is killed? Its disk: here one that counts moments, and kills at the one it is told.

    write   half a file, then the whole one     a crash in between leaves the half
    rename  at once                             it happens, or it does not

Costs: a copy of what is written. Leaves out: power cuts, which may also lose what the system had not flushed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SEED, RATE, MOMENTUM = 7, 0.1, 0.9
"""Of the small training that is killed."""


class Killed(BaseException):
    """The process ends here; nothing of it is left but the disk."""


class Half:
    """What a write leaves that was cut short."""


class Damaged(Exception):
    """A file that is not whole was read."""


class Disk:
    """A disk that survives the process, and counts moments.

    Args:
        kill_at: The moment at which the process is killed; `None`: never.

    """

    def __init__(self, kill_at: int | None = None):
        self.files: dict[str, Any] = {}
        self.kill_at, self.moment, self.where = kill_at, 0, ""

    def has(self, name: str) -> bool:
        """Tell whether there is a file of this name, whole or not.

        Args:
            name: Its name.

        Returns:
            Whether there is.

        """
        return name in self.files

    def read(self, name: str) -> Any:
        """Read a file.

        Args:
            name: Its name.

        Returns:
            What was written.

        Raises:
            Damaged: There is none, or it is half a file.

        """
        if isinstance(self.files.get(name, Half()), Half):
            raise Damaged(f"{name!r} is {'half written' if name in self.files else 'not there'}")
        return self._copy(self.files[name])

    def write(self, name: str, value: Any) -> None:
        """Write a file; it takes a while, in which the process may be killed.

        Args:
            name: Its name.
            value: Numbers and arrays.

        """
        self.tick(f"before {name!r} is written")
        self.files[name] = Half()
        self.tick(f"while {name!r} is written")
        self.files[name] = self._copy(value)
        self.tick(f"after {name!r} is written")

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in one act; a file of that name is replaced.

        Args:
            old: Its name.
            new: The new one.

        """
        if old not in self.files:
            raise Damaged(f"{old!r} is not there, and cannot be renamed")
        self.files[new] = self.files.pop(old)
        self.tick(f"after {old!r} is renamed {new!r}")

    def tick(self, where: str) -> None:
        """Let a moment pass.

        Args:
            where: What happens, for people.

        """
        self.moment += 1
        if self.moment - 1 == self.kill_at:
            self.kill_at, self.where = None, where
            raise Killed

    def _copy(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.copy()
        if isinstance(value, dict):
            return {key: self._copy(each) for key, each in value.items()}
        return type(value)(self._copy(each) for each in value) if isinstance(value, list | tuple) else value


class Gradients:
    """The gradient of each batch of a small problem, and how often each was asked for."""

    def __init__(self, disk: Disk):
        self.disk, self.asked = disk, []

    def __call__(self, weight: np.ndarray, batch: int) -> np.ndarray:
        """Return the gradient of a batch; the process may be killed here, too.

        Args:
            weight: Float64 [2].
            batch: Its number.

        Returns:
            Float64 [2].

        """
        self.disk.tick(f"in step {len(self.asked)} of this run, batch {int(batch)}")
        self.asked.append(int(batch))
        return weight - np.array([1.0 + batch, 2.0 - batch])
