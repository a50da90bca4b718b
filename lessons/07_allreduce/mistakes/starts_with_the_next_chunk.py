"""After the reduce-scatter rank r owns chunk r + 1, as in many drawings of the ring."""

from tfdistedu.collectives import Schedule, Transfer

ID = "starts_with_the_next_chunk"
EXERCISE = "ring_all_gather"
BELIEVES = "After the reduce-scatter rank r owns chunk r + 1, as in many drawings of the ring."
TRUE = "It depends on where the reduce-scatter began. In this one chunk c ends at rank c."
QUESTION = "Look at the last round of the reduce-scatter: which chunk does rank 0 hold complete after it?"
CAUGHT_BY = "test_two_ranks_swap_their_chunks"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    rounds = [[Transfer(r, (r + 1) % n, (r + 1 - s) % n, False) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring_all_gather", n, n, rounds)


def twin(n_ranks):
    ranks = range(n_ranks)
    owns = [(rank + 1) % n_ranks for rank in ranks]
    rounds = []
    for _ in range(n_ranks - 1):
        rounds.append([Transfer(rank, (rank + 1) % n_ranks, owns[rank], False) for rank in ranks])
        owns = [owns[rank - 1] for rank in ranks]
    return Schedule("textbook", n_ranks, n_ranks, rounds)
