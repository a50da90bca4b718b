"""What is a known mistake? A small file that holds a wrong solution, and what somebody believes who writes it.

    ID          its name                        BELIEVES   what its author believes
    EXERCISE    whose solution it is            TRUE       what is true
    CAUGHT_BY   which test must reject it       QUESTION   a question that leads there
    SEEN        a link that was read, or "ours"
    def ring_all_gather(n_ranks): ...           the wrong solution, under the exercise's name
    def twin(n_ranks): ...                      the same mistake, written otherwise: it must get the same name

The author's gate and the grading of a learner's tests read these files; nothing else does. What a learner may be told
about them stands in `recorded.json`.

Costs: runs each file once. Leaves out: whether they are what they claim; see `tfdistedu.course.gate`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfdistedu.course.lesson import Lesson
from tfdistedu.course.subject import load_module
from tfdistedu.errors import BadInput

_TEXTS = ("ID", "EXERCISE", "BELIEVES", "TRUE", "QUESTION", "CAUGHT_BY", "SEEN")


@dataclass(frozen=True)
class MistakeFile:
    """One file of `mistakes/`.

    Attributes:
        file: Where it is.
        id: Its name.
        exercise: The name of the exercise, or of the function that a learner's tests are given.
        believes: What its author believes.
        true: What is true.
        question: A question that leads there.
        caught_by: The test that must reject it; for what is graded, how the reference's message begins.
        seen: A link, or "ours".
        function: The wrong solution.
        twin: The same mistake written otherwise, or `None`.
    """

    file: Path
    id: str
    exercise: str
    believes: str
    true: str
    question: str
    caught_by: str
    seen: str
    function: Callable[..., Any]
    twin: Callable[..., Any] | None


def load_mistakes(lesson: Lesson) -> list[MistakeFile]:
    """Read the mistakes of a lesson.

    Args:
        lesson: The lesson.

    Returns:
        The mistakes, sorted by their files' names.

    Raises:
        BadInput: A file lacks something; the message names file and word.

    """
    return [_load(file, file.read_bytes()) for file in sorted((lesson.folder / "mistakes").glob("*.py"))]


@functools.lru_cache(maxsize=1024)
def _load(file: Path, _: bytes) -> MistakeFile:
    """Read one file; the same text gives the same functions, so what was seen of them can be kept."""
    module = load_module(file)
    for word in _TEXTS:
        if not isinstance(getattr(module, word, None), str):
            raise BadInput(f"{file}: {word} is missing; it is a text.")
    if file.stem != module.ID:
        raise BadInput(f"{file}: its ID is {module.ID!r}; the file is to be called so.")
    function = getattr(module, module.EXERCISE, None)
    if function is None:
        raise BadInput(f"{file}: there is no function {module.EXERCISE}.")
    texts = [getattr(module, word) for word in _TEXTS]
    return MistakeFile(file, *texts, function, getattr(module, "twin", None))
