"""A transfer always adds; that is what the ring is for."""

from tfdistedu.collectives import Schedule, Transfer

ID = "adds_instead_of_taking_over"
EXERCISE = "ring_all_gather"
BELIEVES = "A transfer always adds; that is what the ring is for."
TRUE = "The sums are finished before the all-gather begins: each chunk is taken over as it is."
QUESTION = "Chunk 0 is finished at rank 0. What would it become at rank 1 if it were added to what stands there?"
CAUGHT_BY = "test_two_ranks_swap_their_chunks"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    rounds = [[Transfer(r, (r + 1) % n, (r - s) % n, True) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring_all_gather", n, n, rounds)


def twin(n_ranks):
    def one_round(step):
        return [(c + step, c + step + 1, c, True) for c in range(n_ranks)]

    wrapped = [[(a % n_ranks, b % n_ranks, c, add) for a, b, c, add in one_round(s)] for s in range(n_ranks - 1)]
    return Schedule("adds", n_ranks, n_ranks, wrapped)
