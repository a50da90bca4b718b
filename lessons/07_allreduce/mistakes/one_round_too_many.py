"""n ranks, so n rounds."""

from tfdistedu.collectives import Schedule, Transfer

ID = "one_round_too_many"
EXERCISE = "ring_all_gather"
BELIEVES = "n ranks, so n rounds."
TRUE = "After n - 1 rounds all have all; in one more every chunk comes home to its owner."
QUESTION = "In your last round, which chunk does rank 0 get, and since when has it had that one?"
CAUGHT_BY = "test_two_ranks_swap_their_chunks"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    if n == 1:
        return Schedule("ring_all_gather", 1, 1, [])
    rounds = [[Transfer(r, (r + 1) % n, (r - s) % n, False) for r in range(n)] for s in range(n)]
    return Schedule("ring_all_gather", n, n, rounds)


def twin(n_ranks):
    rounds = []
    for step in range(n_ranks if n_ranks > 1 else 0):
        rounds.append([Transfer((c + step) % n_ranks, (c + step + 1) % n_ranks, c, False) for c in range(n_ranks)])
    return Schedule("long", n_ranks, n_ranks, rounds)
