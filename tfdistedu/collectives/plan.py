"""What must each rank do, and for whom must it wait, when ranks run at their own speed? Its plan.

The plain executor copies everything that travels. A fast link lets others read a rank's memory in place, so memory must
not change under a reader. Two questions decide everything:

1. *Where does the result go?* When a rank sends and receives the same chunk in one round (recursive doubling), the
   result goes to a second slot and the chunk lives there from then on. In place, the other side might read a sum where
   it should read the old value: a race that is lost silently, and often.

        rank 0   slot 0: [ a ] <----- rank 1 reads a            rank 1   slot 0: [ b ] <----- rank 0 reads b
                 slot 1: [a+b]  written here                             slot 1: [a+b]  written here

2. *When may a slot be written?* When all who read it in an earlier round, *or in an earlier call*, are done.

How a rank runs its plan, counting finished rounds in a number that all can see (`done`):

    wait for `release` of the call before; copy the input into slot 0 of every chunk; done = 0
    for each step:  give what the step sends
                    wait until every (rank, round) of `step.readers` has finished: done[rank] > round
                    for each message in step.takes:  wait until done[src] >= step.round; reduce, or take over
                    done = step.round + 1
    the result lies in `final_slot`, chunk by chunk; `release` says whom to wait for before the next call writes

All waits are for earlier rounds, so some rank can always go on: no deadlock.

Costs: a second slot for every chunk that is ever exchanged; neighbouring chunks of one transfer are joined into one
message, so that a round has few waits.

Leaves out: how to wait and how to send (`tfdistedu.links`), and cutting long messages into pieces.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from tfdistedu.collectives.rules import check_rules
from tfdistedu.collectives.schedule import Schedule, Transfer, arrives_left, exchanges


class Message(NamedTuple):
    """Neighbouring chunks that travel together from one rank to another in one round.

    Attributes:
        src: The rank that sends.
        dst: The rank that receives.
        first: The first chunk.
        stop: The chunk after the last one.
        reduce: Whether `dst` reduces the chunks into its own, or takes them over.
        left: Whether the arriving value is the left operand.
        src_slot: The slot of `src` in which the chunks lie at the start of the round.
        own_slot: The slot of `dst` with its own value, when it reduces.
        out_slot: The slot of `dst` for the result.
    """

    src: int
    dst: int
    first: int
    stop: int
    reduce: bool
    left: bool
    src_slot: int
    own_slot: int
    out_slot: int


class Wait(NamedTuple):
    """Go on only when this rank has finished this round.

    Attributes:
        rank: Whom to wait for.
        round: The round that it must have finished.
    """

    rank: int
    round: int


class Step(NamedTuple):
    """What one rank does in one round.

    Attributes:
        round: The round.
        sends: The messages that others take from this rank.
        readers: Whom to wait for before anything is written.
        takes: The messages that this rank takes, in this order.
    """

    round: int
    sends: tuple[Message, ...]
    readers: tuple[Wait, ...]
    takes: tuple[Message, ...]


@dataclass(frozen=True)
class Plan:
    """The steps of all ranks for one schedule.

    Attributes:
        schedule: The schedule.
        n_slots: How many slots each chunk needs: 1, or 2 when any rank sends and receives a chunk in one round.
        steps: `steps[rank]` are the rank's steps, one for each round.
        final_slot: `final_slot[rank][chunk]` is where the chunk lies at the end.
        release: `release[rank]` are those who may still read this rank's slots when the last round is done.
    """

    schedule: Schedule
    n_slots: int
    steps: tuple[tuple[Step, ...], ...]
    final_slot: tuple[tuple[int, ...], ...]
    release: tuple[tuple[Wait, ...], ...]


def make_plan(schedule: Schedule) -> Plan:
    """Turn a schedule into the steps of each rank.

    Args:
        schedule: A schedule that keeps the rules; it need not reach any goal.

    Returns:
        The plan, the same for all links.

    Raises:
        BrokenSchedule: The schedule breaks a rule.

    Example:
        >>> from tfdistedu.collectives.algorithms import recursive_doubling, ring
        >>> make_plan(ring(4)).n_slots, make_plan(recursive_doubling(4)).n_slots
        (1, 2)
        >>> make_plan(ring(4)).steps[0][3].readers  # overwrites a chunk that rank 1 read in round 0
        (Wait(rank=1, round=0),)

    """
    check_rules(schedule)
    ranks = range(schedule.n_ranks)
    slot = [[0] * schedule.n_chunks for _ in ranks]
    reading: list[dict[tuple[int, int], list[Wait]]] = [defaultdict(list) for _ in ranks]
    steps: list[list[Step]] = [[] for _ in ranks]
    flipped = False
    for index, transfers in enumerate(schedule.rounds):
        # Step 1: slots. Who sends and receives a chunk in this round writes its other slot.
        flips = _flips(transfers)
        flipped |= bool(flips)
        messages = _join(transfers, slot, flips)
        sends, takes = _by(messages, "src"), _by(messages, "dst")
        for rank in ranks:
            # Step 2: readers. Whoever read, in an earlier round, a slot that is now written, must be done with it.
            written = [(c, m.out_slot) for m in takes[rank] for c in range(m.first, m.stop)]
            readers = sorted({wait for place in written for wait in reading[rank].pop(place, ())})
            steps[rank].append(Step(index, tuple(sends[rank]), _latest(readers), tuple(takes[rank])))
        # Step 3: remember. What is sent in this round is read in this round.
        for m in messages:
            for c in range(m.first, m.stop):
                reading[m.src][c, m.src_slot].append(Wait(m.dst, index))
        for rank, chunk in flips:
            slot[rank][chunk] ^= 1
    release = tuple(_latest(sorted({wait for waits in each.values() for wait in waits})) for each in reading)
    return Plan(schedule, 2 if flipped else 1, tuple(map(tuple, steps)), tuple(map(tuple, slot)), release)


def _flips(transfers: tuple[Transfer, ...]) -> set[tuple[int, int]]:
    """Return the (rank, chunk) that are both sent and received in this round."""
    return {(t.src, t.chunk) for t in transfers} & {(t.dst, t.chunk) for t in transfers}


def _join(transfers: tuple[Transfer, ...], slot: list[list[int]], flips: set[tuple[int, int]]) -> list[Message]:
    """Return the messages of a round, with neighbouring chunks of one sender and receiver joined.

    A chunk joins an earlier message only past messages that do not touch it: what is reduced into one chunk stays in
    the listed order.
    """
    exchanged, begun = exchanges(transfers), set()
    by_receiver: dict[int, list[Message]] = defaultdict(list)
    for t in transfers:
        place = (t.dst, t.chunk)
        now = slot[t.dst][t.chunk]
        after = now ^ (place in flips)
        own = after if place in begun else now
        begun.add(place)
        message = Message(*t[:3], t.chunk + 1, t.reduce, arrives_left(t, exchanged), slot[t.src][t.chunk], own, after)
        _append(by_receiver[t.dst], message)
    return [message for messages in by_receiver.values() for message in messages]


def _append(messages: list[Message], new: Message) -> None:
    """Add a message of one chunk to those of its receiver: at the end of an earlier one, if that changes no order."""
    for index in reversed(range(len(messages))):
        old = messages[index]
        follows = old.src == new.src and old.stop == new.first
        if follows and old._replace(stop=new.stop) == new._replace(first=old.first):
            messages[index] = old._replace(stop=new.stop)
            return
        if old.first <= new.first < old.stop:
            break
    messages.append(new)


def _by(messages: list[Message], end: str) -> dict[int, list[Message]]:
    """Return the messages of each sender ("src") or receiver ("dst")."""
    result: dict[int, list[Message]] = defaultdict(list)
    for message in messages:
        result[getattr(message, end)].append(message)
    return result


def _latest(waits: list[Wait]) -> tuple[Wait, ...]:
    """Return one wait for each rank: who has finished the later round has finished the earlier ones too."""
    return tuple(Wait(rank, round) for rank, round in sorted(dict(waits).items()))
