"""What is a lesson? A folder that says so in `lesson.toml`, and nothing that the engine would have to guess.

The idea: everything that differs between lessons is data, so that one engine serves them all.

    lessons/07_allreduce/
        lesson.toml        slug, question, minutes, objectives, and one [[exercise]] table each
        stub.py            made from the references by `make record`; what a learner starts from
        exercise.py        the learner's own copy, git-ignored
        test_exercise.py   one argument a test: the function under test; probe_NAME for the fingerprint
        hints.md           "## NAME", then three numbered rungs
        mistakes/*.py      known wrong solutions, with a name
        recorded.json      fingerprints, made by `make record`

Costs: reads a few small files, imports nothing heavy.

Leaves out: running anything; see `tfdistedu.course.runner`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfdistedu.errors import BadInput

KINDS = ("implement", "repair", "predict", "tests")
"""What an exercise can ask for; `lesson.toml` names one of them."""

_LESSON_KEYS = {"slug": str, "title": str, "question": str, "minutes": int, "objectives": list, "out_of_scope": list}
_LESSON_MAY = {"needs": list, "page": str, "use": str, "exercise": list}
_EXERCISE_KEYS = {"name": str, "kind": str, "asks": str, "minutes": int, "reference": str}
_EXERCISE_MAY = {"from": str, "grades": str, "right": list, "deadline": (int, float)}


@dataclass(frozen=True)
class Exercise:
    """One function that a learner writes.

    Attributes:
        lesson: The slug of its lesson.
        name: The function's name in `exercise.py`.
        kind: One of `KINDS`.
        asks: What it asks for, in one sentence.
        minutes: How long it may take a reader.
        reference: Where a right solution is: "package.module:function" or "file.py:function" in the lesson's folder.
        starts_from: For *repair*: the mistake whose text the learner gets.
        grades: For *tests*: the name of the function that the learner's tests are given.
        right: For *tests*: where right variants of that function are.
        deadline: Seconds that one test may take.
    """

    lesson: str
    name: str
    kind: str
    asks: str
    minutes: int
    reference: str
    starts_from: str = ""
    grades: str = ""
    right: tuple[str, ...] = ()
    deadline: float = 5.0

    @property
    def id(self) -> str:
        """The exercise's id, "slug.name"."""
        return f"{self.lesson}.{self.name}"


@dataclass(frozen=True)
class Lesson:
    """One lesson's folder.

    Attributes:
        folder: Where it lies.
        slug: Its id; progress is kept under it, so that a lesson may be renumbered.
        title: Its title.
        question: The question that it answers.
        minutes: How long it takes, exercises and all.
        objectives: What a reader can do afterwards.
        out_of_scope: What it leaves to others.
        needs: Slugs of lessons that help; nothing is ever locked.
        page: The page that goes with it, relative to the folder of `lessons`.
        use: Where the function for `learn use` is: "file.py:function".
        exercises: The exercises, in the order in which they are best done.
    """

    folder: Path
    slug: str
    title: str
    question: str
    minutes: int
    objectives: tuple[str, ...]
    out_of_scope: tuple[str, ...]
    needs: tuple[str, ...]
    page: str
    use: str
    exercises: tuple[Exercise, ...]

    def exercise(self, name: str) -> Exercise:
        """Return the exercise of this name.

        Args:
            name: "name" or "slug.name".

        Returns:
            The exercise.

        Raises:
            BadInput: There is none.

        """
        for exercise in self.exercises:
            if name in (exercise.name, exercise.id):
                return exercise
        names = ", ".join(exercise.name for exercise in self.exercises)
        raise BadInput(f"{self.slug} has no exercise {name!r}; it has {names}.")


def load_lesson(folder: Path) -> Lesson:
    """Read a lesson's folder and check that it is whole.

    Args:
        folder: A folder with a `lesson.toml`.

    Returns:
        The lesson.

    Raises:
        BadInput: A file is missing, a key is unknown, missing or of another type; the message names file and key.

    """
    file = folder / "lesson.toml"
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{folder} is no lesson: it has no lesson.toml.") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file}: {error}.") from None
    _check_keys(file, "", data, _LESSON_KEYS, _LESSON_MAY)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", data["slug"]) or folder.name.split("_", 1)[-1] != data["slug"]:
        raise BadInput(f"{file}: slug {data['slug']!r} does not fit the folder {folder.name!r}: name it NN_slug.")
    exercises = tuple(_exercise(file, data["slug"], index, each) for index, each in enumerate(data.get("exercise", ())))
    names = [exercise.name for exercise in exercises]
    if not names or len(set(names)) < len(names):
        raise BadInput(f"{file}: a lesson needs [[exercise]] tables, each with its own name; found {names}.")
    for needed in ("stub.py", "test_exercise.py", "hints.md"):
        if not (folder / needed).is_file():
            hint = "`make record` makes it." if needed == "stub.py" else "Every lesson has one."
            raise BadInput(f"{folder} has no {needed}. {hint}")
    return Lesson(
        folder=folder,
        slug=data["slug"],
        title=data["title"],
        question=data["question"],
        minutes=data["minutes"],
        objectives=tuple(data["objectives"]),
        out_of_scope=tuple(data["out_of_scope"]),
        needs=tuple(data.get("needs", ())),
        page=data.get("page", ""),
        use=data.get("use", ""),
        exercises=exercises,
    )


def _exercise(file: Path, slug: str, index: int, data: dict[str, Any]) -> Exercise:
    """Make an exercise of its table."""
    where = f", exercise {data.get('name', index + 1)!r}"
    _check_keys(file, where, data, _EXERCISE_KEYS, _EXERCISE_MAY)
    if data["kind"] not in KINDS:
        raise BadInput(f"{file}{where}: there is no kind {data['kind']!r}; there are {', '.join(KINDS)}.")
    if not data["name"].isidentifier():
        raise BadInput(f"{file}{where}: the name is a function's name.")
    for key, kind in (("from", "repair"), ("grades", "tests"), ("right", "tests")):
        if (key in data) != (data["kind"] == kind):
            raise BadInput(f"{file}{where}: {key!r} is for exercises of kind {kind!r}, and they need it.")
    if data["kind"] == "tests" and len(data["right"]) < 3:
        raise BadInput(f"{file}{where}: tests are graded against at least three right variants; name them in 'right'.")
    return Exercise(
        lesson=slug,
        name=data["name"],
        kind=data["kind"],
        asks=data["asks"],
        minutes=data["minutes"],
        reference=data["reference"],
        starts_from=data.get("from", ""),
        grades=data.get("grades", ""),
        right=tuple(data.get("right", ())),
        deadline=float(data.get("deadline", 5)),
    )


def _check_keys(file: Path, where: str, data: dict[str, Any], needed: dict[str, Any], may: dict[str, Any]) -> None:
    """Refuse what is missing, unknown, or of another type."""
    for key in needed:
        if key not in data:
            raise BadInput(f"{file}{where}: {key!r} is missing.")
    for key, value in data.items():
        if key not in needed and key not in may:
            raise BadInput(f"{file}{where}: there is no key {key!r}; there are {', '.join([*needed, *may])}.")
        kind = needed.get(key) or may[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BadInput(f"{file}{where}: {key!r} is {value!r}, which is no {getattr(kind, '__name__', 'number')}.")


def find_root(start: Path) -> Path:
    """Return the nearest folder `lessons`, from a folder upwards; never where the package lies.

    Args:
        start: Where to begin.

    Returns:
        The folder that holds the lessons' folders.

    Raises:
        BadInput: There is none; the message says how to get one.

    """
    for folder in (start, *start.parents):
        for candidate in (folder, folder / "lessons"):
            if candidate.name == "lessons" and any(candidate.glob("*/lesson.toml")):
                return candidate
    raise BadInput(
        f"there is no folder 'lessons' in {start} or above it. Go to your clone of the repository, or lay the lessons "
        "out here: tfdistedu learn init my-course"
    )


def all_lessons(root: Path) -> list[Lesson]:
    """Return the lessons of a course, in their order.

    Args:
        root: The folder that holds them.

    Returns:
        The lessons, sorted by the numbers of their folders.

    Raises:
        BadInput: A lesson is not whole, or two have one slug.

    """
    lessons = [load_lesson(file.parent) for file in sorted(root.glob("*/lesson.toml"))]
    slugs = [lesson.slug for lesson in lessons]
    if len(set(slugs)) < len(slugs):
        raise BadInput(f"{root}: two lessons have one slug: {', '.join(slugs)}.")
    return lessons


def find_lesson(root: Path, name: str) -> Lesson:
    """Return the lesson of this name.

    Args:
        root: The folder that holds the lessons.
        name: A slug, a folder's name, or a number ("allreduce", "07_allreduce", "7").

    Returns:
        The lesson.

    Raises:
        BadInput: There is none; the message lists them.

    """
    lessons = all_lessons(root)
    wanted = name.rstrip("/").rsplit("/", 1)[-1]
    for lesson in lessons:
        number = lesson.folder.name.split("_")[0]
        if wanted in (lesson.slug, lesson.folder.name, number, number.lstrip("0")):
            return lesson
    raise BadInput(f"there is no lesson {name!r}; there are {', '.join(lesson.slug for lesson in lessons)}.")
