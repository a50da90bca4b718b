"""In the next round a rank sends the next chunk, one number higher."""

from tfdistedu.collectives import Schedule, Transfer

ID = "counts_the_wrong_way"
EXERCISE = "ring_all_gather"
BELIEVES = "In the next round a rank sends the next chunk, one number higher."
TRUE = "What came last came from the left, and so did the chunk before: the number goes down."
QUESTION = "In round 0 rank 0 gets a chunk from its left neighbour. Which number does it have?"
CAUGHT_BY = "test_every_rank_sends_what_it_has_and_ends_with_all"
SEEN = "ours"


def ring_all_gather(n_ranks):
    n = n_ranks
    rounds = [[Transfer(r, (r + 1) % n, (r + s) % n, False) for r in range(n)] for s in range(n - 1)]
    return Schedule("ring_all_gather", n, n, rounds)


def twin(n_ranks):
    rounds = [[] for _ in range(n_ranks - 1)]
    for rank in range(n_ranks):
        for step in range(n_ranks - 1):
            up = rank + step if rank + step < n_ranks else rank + step - n_ranks
            rounds[step].append((rank, (rank + 1) % n_ranks, up, False))
    return Schedule("up", n_ranks, n_ranks, rounds)
