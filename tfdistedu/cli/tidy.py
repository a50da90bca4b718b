"""Who removes a command's temporary files when the command is killed?

SIGKILL cannot be caught, and TensorFlow keeps a file for each function that AutoGraph rewrote, to be removed at the
end of the process. So a command that uses TensorFlow works in a temporary folder of its own, and a small process waits
for its end, whatever ends it:

    command  --pipe-->  helper: reads until the end of file, then removes the folder

Cost: one shell that sleeps in a read. Left out: Windows, where there is no such shell; there only a killed command
leaves its folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def own_temporary_folder() -> Iterator[str]:
    """Let this process, and those that it starts, make their temporary files in a folder that does not outlive it.

    Yields:
        The folder.

    """
    folder = tempfile.mkdtemp(prefix="tfdistedu-")
    before, environment = tempfile.tempdir, os.environ.get("TMPDIR")
    helper = None
    if os.name == "posix":
        command = ["/bin/sh", "-c", 'cat > /dev/null; rm -rf -- "$0"', folder]
        # A session of its own: Ctrl-C ends the command, and this has to come after it.
        helper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env={"PATH": os.defpath})
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    try:
        yield folder
    finally:
        tempfile.tempdir = before
        if environment is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = environment
        if helper is not None:
            helper.stdin.close()
            helper.wait()
        shutil.rmtree(folder, ignore_errors=True)
