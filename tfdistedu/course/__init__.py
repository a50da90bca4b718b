"""How does somebody find out what is wrong with their own solution? The engine of the exercises.

The idea: a lesson is a folder (`lesson`), a learner's function is put to its tests (`runner`, in pytest by `plugin`),
and a failure is told in three layers (`wrong`, `diagnose`): where it first goes wrong, what it looks like, and, only
when exactly one known mistake does the same, its name.

    lesson.toml --> stub.py --> exercise.py --> test_exercise.py --> where, symptom, name --> hints, show, use
        ^                                              ^
        |  made by `record`                            |  kept fair by `gate`

In a notebook:

    from tfdistedu.course import check
    check("allreduce.ring_all_gather", ring_all_gather)

Costs: imports NumPy only; lessons that need TensorFlow import it themselves.

Leaves out: grading people. Nothing is counted, and nothing is locked.
"""

from __future__ import annotations

from tfdistedu.course.notebook import check

__all__ = ["check"]
