"""Transfers of one round happen one after the other, so a chunk can travel on in the same round."""

from tfdistedu.collectives import Schedule, Transfer

ID = "all_in_one_round"
EXERCISE = "ring_all_gather"
BELIEVES = "Transfers of one round happen one after the other, so a chunk can travel on in the same round."
TRUE = (
    "All transfers of a round read what stood at its start. What arrives can leave in the next round at the earliest."
)
QUESTION = "When a round starts, what does rank 1 hold of what rank 0 sends in that same round?"
CAUGHT_BY = "test_every_rank_sends_what_it_has_and_ends_with_all"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    together = [Transfer(r, (r + 1) % n, (r - s) % n, False) for s in range(n - 1) for r in range(n)]
    return Schedule("ring_all_gather", n, n, [together])


def twin(n_ranks):
    together = []
    for chunk in range(n_ranks):
        for hop in range(n_ranks - 1):
            together.append(((chunk + hop) % n_ranks, (chunk + hop + 1) % n_ranks, chunk, False))
    return Schedule("at once", n_ranks, n_ranks, (tuple(together),))
