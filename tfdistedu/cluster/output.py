"""Who wrote which line?

Each task has pipes of its own on descriptors 1 and 2, so that also what C++ logs belongs to somebody. A thread a pipe
reads it at once (a full pipe would stop the task), keeps it, and shows whole lines under the task's name:

    worker:0  --pipe 1-->  thread  -->  kept, and  "[worker:0] loss 0.3"  on the launcher's stdout
    worker:0  --pipe 2-->  thread  -->  kept, and on the launcher's stderr

Cost: two threads a task, asleep until something comes. Left out: the exact order of what a task writes to 1 and to 2.
"""

from __future__ import annotations

import os
import sys
import threading
import time

_KEPT = 16 << 20  # bytes a task: what a long training prints must not fill the launcher


class Output:
    """What the tasks of one cluster wrote.

    Args:
        show: Whether lines are shown as they come; they are kept in any case.

    """

    def __init__(self, show: bool = True):
        self._show = show
        self._kept: dict[str, bytearray] = {}
        self._rest: dict[tuple[str, str], bytes] = {}  # what has no end of line yet: two streams never share a line
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def read(self, task: str, descriptor: int, stream: str) -> None:
        """Read a pipe until its end, in a thread.

        Args:
            task: Whose it is.
            descriptor: Its reading end, which is closed at its end.
            stream: `"stdout"` or `"stderr"`: where its lines are shown.

        """
        self._kept.setdefault(task, bytearray())
        thread = threading.Thread(target=self._follow, args=(task, descriptor, stream), daemon=True)
        self._threads.append(thread)
        thread.start()

    def text(self, task: str) -> str:
        """Return what a task has written so far.

        Args:
            task: Its name.

        Returns:
            The lines of both streams in the order in which they ended, then what has no end yet; the last 16 MiB.

        """
        with self._lock:
            rest = [self._rest.get((task, stream), b"") for stream in ("stdout", "stderr")]
            return b"".join([self._kept.get(task, b""), *rest]).decode(errors="replace")

    def settle(self, quiet: float = 0.1, at_most: float = 1.0) -> None:
        """Wait until nothing more comes.

        Args:
            quiet: Seconds without a byte that count as the end.
            at_most: Seconds to wait in any case.

        """
        end, last, since = time.monotonic() + at_most, -1, time.monotonic()
        while time.monotonic() < end:
            with self._lock:
                size = sum(map(len, [*self._kept.values(), *self._rest.values()]))
            if size != last:
                last, since = size, time.monotonic()
            elif time.monotonic() - since >= quiet:
                return
            time.sleep(0.01)

    def close(self) -> None:
        """Wait for the rest of what ended tasks wrote."""
        for thread in self._threads:
            thread.join(1.0)

    def _follow(self, task: str, descriptor: int, stream: str) -> None:
        try:
            while data := os.read(descriptor, 65536):
                self._take(task, stream, data)
        except OSError:
            pass
        finally:
            self._take(task, stream, b"", last=True)
            os.close(descriptor)

    def _take(self, task: str, stream: str, data: bytes, last: bool = False) -> None:
        """Keep and show the lines that are whole now; `last`: no end will come."""
        with self._lock:
            *lines, rest = (self._rest.pop((task, stream), b"") + data).split(b"\n")
            kept = self._kept[task]
            kept += b"".join(line + b"\n" for line in lines)
            if rest and (last or len(rest) > 65536):  # a line without an end
                kept += rest
                lines, rest = [*lines, rest], b""
            self._rest[task, stream] = rest
            del kept[: max(0, len(kept) - _KEPT)]
        self._print(task, stream, lines)

    def _print(self, task: str, stream: str, lines: list[bytes]) -> None:
        if not self._show or not lines:
            return
        # A progress bar rewrites its line: what stands after its last carriage return is what one would see.
        shown = (line.rstrip(b"\r").rsplit(b"\r", 1)[-1].decode(errors="replace") for line in lines)
        text = "".join(f"[{task}] {line}\n" for line in shown)
        with self._lock:
            try:
                target = getattr(sys, stream)
                target.write(text)
                target.flush()
            except (OSError, ValueError, AttributeError):  # nobody reads any more
                self._show = False
