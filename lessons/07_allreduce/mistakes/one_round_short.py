"""n - 2 rounds are enough, for one chunk is there already and the last comes by itself."""

from tfdistedu.collectives import Schedule, Transfer

ID = "one_round_short"
EXERCISE = "ring_all_gather"
BELIEVES = "n - 2 rounds are enough, for one chunk is there already and the last comes by itself."
TRUE = "Every rank lacks n - 1 chunks, and gets one a round."
QUESTION = "How many chunks does a rank lack at the start, and how many come in a round?"
CAUGHT_BY = "test_two_ranks_swap_their_chunks"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    rounds = [[Transfer(r, (r + 1) % n, (r - s) % n, False) for r in range(n)] for s in range(n - 2)]
    return Schedule("ring_all_gather", n, n, rounds)


def twin(n_ranks):
    rounds, step = [], 0
    while step < n_ranks - 2:
        rounds.append([Transfer(r, (r + 1) % n_ranks, (r + n_ranks - step) % n_ranks, False) for r in range(n_ranks)])
        step += 1
    return Schedule("short", n_ranks, n_ranks, rounds)
