"""How does one help without giving it away? Three rungs: a question, where to look, and nearly the line.

The idea: `hints.md` has one section an exercise, each with a list of three.

    ## ring_all_gather
    1. Which chunk is new to your right neighbour?
    2. Write down what rank 0 sends for n = 4.
    3. In round s rank r sends ...

Costs: reads one file. Leaves out: how many somebody has seen; `tfdistedu.course.progress` knows.
"""

from __future__ import annotations

import re

from tfdistedu.course.lesson import Exercise, Lesson
from tfdistedu.errors import BadInput

RUNGS = 3
"""Every exercise has so many hints."""


def hints_for(lesson: Lesson, exercise: Exercise) -> list[str]:
    """Return the three hints of an exercise.

    Args:
        lesson: The lesson.
        exercise: The exercise.

    Returns:
        Three texts.

    Raises:
        BadInput: The section is missing, or does not have three.

    """
    file = lesson.folder / "hints.md"
    text = re.sub(r"<!--.*?-->", "", file.read_text(encoding="utf-8"), flags=re.S)  # markers for the page
    section = re.search(rf"^## {exercise.name}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    found = re.findall(r"^\d\. (.*?)(?=^\d\. |\Z)", section.group(1), re.M | re.S) if section else []
    if len(found) != RUNGS:
        raise BadInput(f"{file}: the section '## {exercise.name}' has {len(found)} hints, and needs {RUNGS}.")
    return [" ".join(text.split()) for text in found]
