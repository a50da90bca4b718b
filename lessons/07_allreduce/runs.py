"""What the page of this lesson shows: `make record` runs it, and tests run it again."""

import time
from pathlib import Path

import numpy as np

from tfdistedu.collectives.algorithms import naive, ring, ring_all_gather, ring_reduce_scatter
from tfdistedu.collectives.draw import picture
from tfdistedu.collectives.draw_svg import svg
from tfdistedu.collectives.trace import bytes_per_link, trace
from tfdistedu.course.lesson import load_lesson
from tfdistedu.course.runner import LessonTests
from tfdistedu.course.subject import choose_subject, load_module

FOLDER = Path(__file__).parent
SIZE = 1_000_000  # float32 numbers: 4 MB a rank


def first_half():
    """Return a picture of the reduce-scatter of four ranks; the all-gather is the exercise."""
    return svg(picture(ring_reduce_scatter(4), "reduce_scatter", 0))


def rank_0():
    """Return what rank 0 does in the reduce-scatter of four ranks."""
    watch = load_module(FOLDER / "watch_ring.py").lines(4, SIZE)
    half = len(ring_reduce_scatter(4).rounds)
    return "\n".join(line for line in watch if int(line.split()[1].rstrip(":")) < half) + "\n"


def megabytes(n_bytes):
    return f"{n_bytes / 1e6:.1f} MB"


def busiest(schedule):
    """Return the bytes of the rank that sends and receives most."""
    links = bytes_per_link(trace(schedule, SIZE, itemsize=4))
    ranks = range(schedule.n_ranks)
    return max(sum(n for (src, dst), n in links.items() if rank in (src, dst)) for rank in ranks)


def check_seconds():
    """Return how long the tests take on the references; the start of Python and pytest not counted."""
    lesson = load_lesson(FOLDER)
    tests, subject, start = LessonTests(lesson), choose_subject(lesson, "reference"), time.perf_counter()
    for exercise in lesson.exercises:
        assert not tests.check(exercise, subject)
    return f"{time.perf_counter() - start:.1f} s"


def shown():
    """Run every line that the page shows."""
    arrays = [np.arange(4.0) + rank for rank in range(4)]
    results, n_messages = load_module(FOLDER / "naive.py").gather_and_broadcast(arrays)
    assert n_messages == 6
    assert all(np.array_equal(result, sum(arrays)) for result in results)
    for n_ranks in (1, 4):
        assert (ring_reduce_scatter(n_ranks) + ring_all_gather(n_ranks)).rounds == ring(n_ranks).rounds


OUTPUTS = {"reduce_scatter_4.svg": first_half, "rank_0.txt": rank_0}
VALUES = {
    "message": lambda: megabytes(4 * SIZE),
    "naive_4": lambda: megabytes(busiest(naive(4))),
    "naive_64": lambda: megabytes(busiest(naive(64))),
    "ring_4": lambda: megabytes(busiest(ring(4))),
    "ring_64": lambda: megabytes(busiest(ring(64))),
    "rounds_4": lambda: str(len(ring(4).rounds)),
    "rounds_64": lambda: str(len(ring(64).rounds)),
}
TIMED = {"check": check_seconds}
