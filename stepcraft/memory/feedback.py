"""Votes on procedures, and what they are worth in a search.

A procedure moves by `weight` times the difference of two shares: of votes for it and of votes
against it, each as the lower end of its 95 % interval (Wilson 1927). So a single vote moves it
little (by 0.2 of the weight), ten that agree by 0.7, and many approach the weight. A procedure that
is marked as stale moves down by the whole weight beside that.

The default weight, 0.1, is what lies between neighbours of a search: for goals like those of the
bundled procedures the best result is 0.08 ahead of the fourth in the median, and the third 0.09
ahead of the thirteenth. So votes change the order of what fits about equally well, and lift nothing
that does not fit.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from stepcraft.errors import BadInput
from stepcraft.memory.procedure import Found, Procedure

FEEDBACK_WEIGHT = 0.1
"""By how much votes move the score of a procedure at most; 0 switches them off."""

VOTES = "votes"
"""The key of the counters in a procedure's metadata: `{"up": 3, "down": 1}`."""

_MOST_VOTES = 10**9

_LAST_CALL = "voted_by_call"

_BEYOND = 10
"""How many more procedures are fetched than are wanted, so that one that moves down makes room."""

_Z2 = 1.959964**2
"""The square of the normal quantile of a 95 % interval."""


class Counts(NamedTuple):
    """How many votes a procedure has."""

    up: int
    down: int

    def __str__(self) -> str:
        return f"+{self.up} -{self.down}"


def counts(procedure: Procedure) -> Counts:
    """Return how many votes there are for and against a procedure."""
    votes: Any = procedure.metadata.get(VOTES)
    values = [votes.get(name) if isinstance(votes, dict) else 0 for name in Counts._fields]
    # The metadata may come from a file that somebody else wrote.
    numbers = (value if isinstance(value, int) else 0 for value in values)
    return Counts(*(min(max(0, number), _MOST_VOTES) for number in numbers))


def with_vote(procedure: Procedure, vote: Literal[1, -1], *, call: str = "") -> Procedure:
    """Return the procedure with one more vote, for `ProcedureMemory.update`.

    Args:
        procedure: The procedure.
        vote: 1 for it, -1 against it.
        call: The id of a tool call: a step that runs again after an interrupt votes once.
    """
    if call and procedure.metadata.get(_LAST_CALL) == call:
        return procedure
    up, down = counts(procedure)
    votes = {"up": up + (vote == 1), "down": down + (vote == -1)}
    last = {_LAST_CALL: call} if call else {}
    return replace(procedure, metadata={**procedure.metadata, VOTES: votes, **last})


def adjustment(procedure: Procedure, weight: float) -> float:
    """Return by how much a score moves: between minus twice the weight and the weight."""
    up, down = counts(procedure)
    stale = 1 if procedure.metadata.get("stale") else 0
    return weight * (_least_share(up, up + down) - _least_share(down, up + down) - stale)


def fetched(k: int, weight: float) -> int:
    """Return how many procedures to search for, so that `reranked` can choose k of them.

    Raises:
        BadInput: The weight is not between 0 and 1.
    """
    if not 0 <= weight <= 1:
        raise BadInput(f"feedback_weight must be between 0 and 1, not {weight}")
    return k + _BEYOND if weight and k > 0 else k


def reranked(hits: Sequence[Found], k: int, weight: float) -> list[Found]:
    """Return the k best hits once votes count; without votes, the first k as they are."""
    moved = [Found(hit.procedure, hit.score + adjustment(hit.procedure, weight)) for hit in hits]
    return sorted(moved, key=lambda hit: -hit.score)[:k]


def _least_share(part: int, whole: int) -> float:
    """Return the lower end of Wilson's 95 % interval of a share; 0 of nothing."""
    if not part:
        return 0.0
    share = part / whole
    reach = math.sqrt(_Z2 * (share * (1 - share) + _Z2 / (4 * whole)) / whole)
    return (share + _Z2 / (2 * whole) - reach) / (1 + _Z2 / whole)
