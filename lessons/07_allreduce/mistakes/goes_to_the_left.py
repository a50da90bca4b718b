"""The direction does not matter, so chunks may go to the left."""

from tfdistedu.collectives import Schedule, Transfer

ID = "goes_to_the_left"
EXERCISE = "ring_all_gather"
BELIEVES = "The direction does not matter, so chunks may go to the left."
TRUE = "All arrive, but on the other links: in this ring each link carries bytes to the right only."
QUESTION = "Which way went the chunks in the reduce-scatter, and which link would carry both directions now?"
CAUGHT_BY = "test_it_is_a_ring_to_the_right"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    rounds = [[Transfer(r, (r - 1) % n, (r + s) % n, False) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring_all_gather", n, n, rounds)


def twin(n_ranks):
    last = list(range(n_ranks))
    rounds = []
    for _ in last[1:]:
        rounds.append([Transfer(r, r - 1 if r else n_ranks - 1, last[r], False) for r in range(n_ranks)])
        last = last[1:] + last[:1]
    return Schedule("left", n_ranks, n_ranks, rounds)
