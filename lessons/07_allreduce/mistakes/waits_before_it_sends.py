"""First take what comes, then send."""

from tfdistedu.links import run_ranks

ID = "waits_before_it_sends"
EXERCISE = "all_reduce"
BELIEVES = "First take what comes, then send."
TRUE = "If all wait, nobody sends."
QUESTION = "What happens when every rank waits for its left neighbour first?"
CAUGHT_BY = "Deadlock"
SEEN = "ours"


def all_reduce(arrays, trace):
    def program(link, mine):
        right, left = (link.rank + 1) % link.n_ranks, (link.rank - 1) % link.n_ranks
        for _ in range(link.n_ranks - 1):
            came = link.recv(left)
            link.send(mine, right)
            mine = mine + came
        return mine.copy()

    return run_ranks(program, arrays).results
