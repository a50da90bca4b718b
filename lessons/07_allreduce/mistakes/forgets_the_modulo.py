"""Rank numbers wrap round by themselves."""

from tfdistedu.collectives import Schedule, Transfer

ID = "forgets_the_modulo"
EXERCISE = "ring_all_gather"
BELIEVES = "Rank numbers wrap round by themselves."
TRUE = "A schedule names ranks 0 .. n - 1; who comes after the last one has to be written."
QUESTION = "Who is the right neighbour of rank n - 1, and what does your line call it?"
CAUGHT_BY = "test_two_ranks_swap_their_chunks"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    rounds = [[Transfer(r, r + 1, (r - s) % n, False) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring_all_gather", n, n, rounds)


def twin(n_ranks):
    rounds = []
    for step in range(1, n_ranks):
        rounds.append([(rank, rank + 1, (rank - step + 1) % n_ranks, False) for rank in range(n_ranks)])
    return Schedule("no wrap", n_ranks, n_ranks, rounds)
