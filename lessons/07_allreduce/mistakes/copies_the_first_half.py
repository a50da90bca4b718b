"""The chunk numbers of the second half are those of the first."""

from tfdistedu.collectives import Schedule, Transfer

ID = "copies_the_first_half"
EXERCISE = "ring_all_gather"
BELIEVES = "The second half has the same chunk numbers as the first; only nothing is added any more."
TRUE = "The first half begins with the chunk before a rank's own; the second begins with its own, which is finished."
QUESTION = "Which chunk is finished at rank r when the second half begins, and which one does your round 0 send?"
CAUGHT_BY = "test_two_ranks_swap_their_chunks"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    rounds = [[Transfer(r, (r + 1) % n, (r - s - 1) % n, False) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring_all_gather", n, n, rounds)


def twin(n_ranks):
    rounds = []
    for step in range(1, n_ranks):
        rounds.append([Transfer(rank, (rank + 1) % n_ranks, (rank - step) % n_ranks, False) for rank in range(n_ranks)])
    return Schedule("first half again", n_ranks, n_ranks, rounds)
