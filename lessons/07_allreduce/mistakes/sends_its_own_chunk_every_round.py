"""A rank sends what it owns, again and again, until all have it."""

from tfdistedu.collectives import Schedule, Transfer

ID = "sends_its_own_chunk_every_round"
EXERCISE = "ring_all_gather"
BELIEVES = "A rank sends what it owns, again and again, until all have it."
TRUE = "After round 0 its neighbour has that chunk; from then on a rank passes on what came last."
QUESTION = "Your right neighbour has your own chunk after round 0. Who brings it to the rank after that?"
CAUGHT_BY = "test_every_rank_sends_what_it_has_and_ends_with_all"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    rounds = [[Transfer(r, (r + 1) % n, r, False) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring_all_gather", n, n, rounds)


def twin(n_ranks):
    once = []
    for rank in range(n_ranks):
        once.append(Transfer(src=rank, dst=0 if rank == n_ranks - 1 else rank + 1, chunk=rank, reduce=False))
    return Schedule("again", n_ranks, n_ranks, [once] * (n_ranks - 1))
