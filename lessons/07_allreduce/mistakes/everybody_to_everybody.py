"""One round is faster than n - 1: let every rank send its chunk to all others."""

from tfdistedu.collectives import Schedule, Transfer

ID = "everybody_to_everybody"
EXERCISE = "ring_all_gather"
BELIEVES = "One round is faster than n - 1: let every rank send its chunk to all others."
TRUE = "All arrive, but every rank sends on n - 1 links at once; a ring uses one."
QUESTION = "How many chunks does rank 0 send in your round 0, and over how many links?"
CAUGHT_BY = "test_it_is_a_ring_to_the_right"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    direct = [Transfer(r, other, r, False) for r in range(n) for other in range(n) if other != r]
    return Schedule("ring_all_gather", n, n, [direct])


def twin(n_ranks):
    direct = [(r, (r + d) % n_ranks, r, False) for d in range(1, n_ranks) for r in range(n_ranks)]
    return Schedule("direct", n_ranks, n_ranks, [direct])
