"""How do lessons get to a learner who has no clone, and how do they stay new without touching what was written?

The idea: the package carries the lessons; a course is a copy of them. All files are ours and are renewed, but for
`exercise.py`, its backups and the progress, which are the learner's and are never written over.

    tfdistedu/_lessons (in a wheel) or lessons (in a clone)  --init-->  my-course/lessons
                                                             --update-> the same, but not exercise.py

Costs: copies some hundred small files. Leaves out: merging; a learner who edited our files gets ours again.
"""

from __future__ import annotations

import datetime
import filecmp
import shlex
import shutil
from pathlib import Path

from tfdistedu.course.lesson import Lesson, all_lessons
from tfdistedu.course.notebook import packaged_lessons
from tfdistedu.course.progress import Progress
from tfdistedu.course.subject import start_exercise
from tfdistedu.errors import BadInput


def is_learners(file: Path) -> bool:
    """Tell whether a file is the learner's own: an `exercise.py`, a backup of one, or progress.

    Args:
        file: Its path.

    Returns:
        Whether nothing may write over it.

    """
    return file.name.startswith(("exercise.", ".progress"))


def _ours(root: Path) -> list[Path]:
    """Return our files in a folder of lessons, relative to it."""
    files = (file for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return sorted(file.relative_to(root) for file in files if not is_learners(file))


def init(folder: Path) -> Path:
    """Lay the lessons out in a folder.

    Args:
        folder: Where to; it is made if it does not exist.

    Returns:
        The folder of the lessons in it.

    Raises:
        BadInput: There are lessons already.

    """
    root = folder / "lessons"
    if root.exists():
        raise BadInput(f"{root} is there already. To renew it: cd {shlex.quote(str(folder))} && tfdistedu learn update")
    root.mkdir(parents=True)
    _copy(packaged_lessons(), root)
    return root


def update(root: Path) -> list[Path]:
    """Renew a course: all files but the learner's own.

    Args:
        root: The folder of the lessons.

    Returns:
        The files that changed or went, relative to it.

    Raises:
        BadInput: It is the package's own folder.

    """
    source = packaged_lessons()
    if source == root.resolve():
        raise BadInput(f"{root} is the clone that the package runs from: git pull renews it.")
    gone = [file for file in _ours(root) if not (source / file).is_file() and len(file.parts) > 1]
    known = {lesson.folder.name for lesson in all_lessons(source)}
    for file in gone:
        if file.parts[0] in known:  # a folder that is none of ours stays as it is
            (root / file).unlink()
    return [*_copy(source, root), *(file for file in gone if file.parts[0] in known)]


def reset(lesson: Lesson) -> Path | None:
    """Begin a lesson anew: keep the learner's file under another name, and make a new one from the stub.

    Args:
        lesson: The lesson.

    Returns:
        The backup, or `None` if there was nothing to keep.

    """
    file, backup = lesson.folder / "exercise.py", None
    if file.is_file():
        now = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
        for number in range(1, 1000):
            backup = lesson.folder / f"exercise.{now}-{number}.py"
            if not backup.exists():
                break
        file.rename(backup)
    start_exercise(lesson)
    Progress(lesson.folder.parent).forget(lesson)
    return backup


def _copy(source: Path, root: Path) -> list[Path]:
    """Copy our files, and return those that were not the same."""
    changed = []
    for file in _ours(source):
        new = root / file
        if not new.is_file() or not filecmp.cmp(source / file, new, shallow=False):
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / file, new)
            changed.append(file)
    return changed
