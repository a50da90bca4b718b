"""Is your all-gather a ring, is your prediction right, and do your tests catch what is wrong?

Smallest case first. The argument of a test is the function under test.
"""

from pathlib import Path

import numpy as np

from tfdistedu.collectives.algorithms import ring, ring_reduce_scatter
from tfdistedu.course.diagnose import check_prediction, check_same_bits, check_schedule, check_traffic, schedule_of
from tfdistedu.course.grade import check_accepts, check_rejects, probe_grade
from tfdistedu.course.runner import attempt
from tfdistedu.course.subject import load_module
from tfdistedu.course.wrong import Wrong

FOLDER = Path(__file__).parent


def test_one_rank_sends_nothing(ring_all_gather):
    schedule = schedule_of(ring_all_gather, 1)
    if any(schedule.rounds):
        raise Wrong(
            "ring_all_gather(1): the only rank sends something.",
            came=f"round 0: {schedule.rounds[0]}",
            expected="no transfer at all",
            why="who is alone has everything already",
        )


def test_two_ranks_swap_their_chunks(ring_all_gather):
    check_schedule(ring_all_gather, 2)


def test_every_rank_sends_what_it_has_and_ends_with_all(ring_all_gather):
    for n_ranks in (3, 4, 5):
        check_schedule(ring_all_gather, n_ranks)


def test_it_is_a_ring_to_the_right(ring_all_gather):
    for n_ranks in (2, 3, 4, 5):
        check_traffic(ring_all_gather, n_ranks)


def test_it_completes_the_ring_bit_by_bit(ring_all_gather):
    for n_ranks in (1, 2, 3, 4, 5):
        check_same_bits(ring_all_gather, ring_reduce_scatter(n_ranks), ring(n_ranks))


def probe_ring_all_gather(ring_all_gather):
    """What it does, for the fingerprint: its transfers, round by round."""

    def shape(n_ranks):
        schedule = ring_all_gather(n_ranks)
        return [schedule.n_ranks, schedule.n_chunks, [sorted(map(list, rnd)) for rnd in schedule.rounds]]

    return [attempt(shape, n_ranks) for n_ranks in (1, 2, 3, 4, 5)]


def test_the_run_says_the_same(predict_ring):
    right = load_module(FOLDER / "reference.py").predict_ring()
    check_prediction(predict_ring, right, "python lessons/07_allreduce/watch_ring.py 7 1400")


def probe_predict_ring(predict_ring):
    """What was guessed."""
    return attempt(predict_ring)


def test_it_accepts_every_right_ring(check_ring):
    check_accepts(FOLDER, check_ring)


def test_it_rejects_every_wrong_ring(check_ring):
    return check_rejects(FOLDER, check_ring)


def probe_check_ring(check_ring):
    """Which right rings it refuses and which wrong ones it lets through."""
    return probe_grade(FOLDER, check_ring)


def probe_all_reduce(all_reduce):
    """What a ring does: its results' bytes, who sent how much to whom, and what became of its inputs."""
    seen = []
    for n_ranks, size in ((1, 3), (2, 4), (3, 7), (4, 16), (5, 12), (4, 2)):
        arrays, trace = [2.0**25 + 1 + 1000 * r + np.arange(size) / 7 for r in range(n_ranks)], []
        results = attempt(_bytes, all_reduce, arrays, trace)
        links = sorted([r.src, r.dst, r.n_bytes] for r in trace)
        seen.append([results, links, [array.tobytes().hex() for array in arrays]])
    return seen


def _bytes(all_reduce, arrays, trace):
    return [np.asarray(result).tobytes().hex() for result in all_reduce(arrays, trace)]
