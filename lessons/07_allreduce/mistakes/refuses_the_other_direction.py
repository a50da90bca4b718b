"""A ring goes to the right."""

import numpy as np

ID = "refuses_the_other_direction"
EXERCISE = "check_ring"
BELIEVES = "A ring goes to the right."
TRUE = "The task says to the right or to the left."
QUESTION = "Which of the right variants did you not think of?"
CAUGHT_BY = "test_it_accepts_every_right_ring"
SEEN = "ours"


def check_ring(all_reduce):
    sent = []
    all_reduce([np.arange(8.0) for _ in range(4)], sent)
    assert {(record.src, record.dst) for record in sent} == {(0, 1), (1, 2), (2, 3), (3, 0)}


def twin(all_reduce):
    sent = []
    all_reduce([np.zeros(8) for _ in range(4)], sent)
    assert all(record.dst == (record.src + 1) % 4 for record in sent)
