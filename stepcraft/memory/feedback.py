"""Votes on procedures, and what they are worth in a search.

A procedure moves by `weight` times the difference of two shares: of votes for it and of votes against it, each as the
lower end of its 95 % interval (Wilson 1927). So a single vote moves it little (by 0.2 of the weight), ten that agree by
0.7, and many approach the weight. A procedure that is marked as stale moves down by the whole weight beside that.

The default weight, 0.1, is what lies between neighbours of a search: for goals like those of the bundled procedures the
best result is 0.08 ahead of the fourth in the median, and the third 0.09 ahead of the thirteenth. So votes change the order
of what fits about equally well, and lift nothing that does not fit.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, NotRequired, cast

from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.memory.history import listed, now
from stepcraft.memory.procedure import Found, Procedure

FEEDBACK_WEIGHT = 0.1
"""By how much votes move the score of a procedure at most; 0 switches them off."""

MAX_VOTES = 1_000
"""How many votes of a procedure are kept; the oldest one goes first."""

MAX_WHY = 1_000
"""The longest reason or name of a vote, in characters."""

_BEYOND = 10
"""How many more procedures are fetched than are wanted, so that one that moves down makes room."""

_Z2 = 1.959964**2
"""The square of the normal quantile of a 95 % interval."""


class Vote(TypedDict):
    """A vote on a procedure."""

    vote: Literal[1, -1]
    why: str
    by: str
    """Who voted, "" if nobody says."""
    at: str
    """When (ISO 8601, UTC)."""
    call: NotRequired[str]
    """The id of an agent's tool call: a step that runs again after an interrupt votes once."""


class Counts(NamedTuple):
    """How many votes a procedure has."""

    up: int
    down: int

    def __str__(self) -> str:
        return f"+{self.up} -{self.down}"


def votes(procedure: Procedure) -> list[Vote]:
    """Return the votes on a procedure, oldest first; what else stands there is left out."""
    entries = listed(procedure.metadata.get("votes"))
    return [
        cast("Vote", {"why": "", "by": "", "at": "", **entry})
        for entry in entries
        if isinstance(entry, dict) and _is_vote(entry)  # pyright: ignore[reportUnknownArgumentType] - JSON
    ]


def counts(procedure: Procedure) -> Counts:
    """Return how many votes there are for and against a procedure."""
    given = votes(procedure)
    up = sum(vote["vote"] == 1 for vote in given)
    return Counts(up, len(given) - up)


def with_vote(
    procedure: Procedure, vote: Literal[1, -1], *, why: str = "", by: str = "", call: str = ""
) -> Procedure:
    """Return the procedure with one more vote, for `ProcedureMemory.update`.

    Args:
        procedure: the procedure.
        vote: 1 for it, -1 against it.
        why: the reason.
        by: who votes.
        call: the id of a tool call, which votes once however often it runs.

    Raises:
        BadInput: the reason or the name is too long.
    """
    for name, text in (("reason", why), ("name", by)):
        if len(text) > MAX_WHY:
            raise BadInput(
                f"the {name} of a vote has {len(text):,} characters; at most {MAX_WHY:,} are kept, so shorten it"
            )
    if call and any(one.get("call") == call for one in votes(procedure)):
        return procedure
    made = Vote(vote=vote, why=why.strip(), by=by.strip(), at=now())
    if call:
        made["call"] = call
    kept = listed(procedure.metadata.get("votes"))  # with what the user keeps there
    return replace(procedure, metadata={**procedure.metadata, "votes": [*kept, made][-MAX_VOTES:]})


def adjustment(procedure: Procedure, weight: float = FEEDBACK_WEIGHT) -> float:
    """Return by how much a procedure's score moves: between minus twice the weight and the weight."""
    metadata = procedure.metadata
    if "votes" not in metadata and "stale" not in metadata:
        return 0.0
    up, down = counts(procedure)
    stale = 1 if metadata.get("stale") else 0
    return weight * (_least_share(up, up + down) - _least_share(down, up + down) - stale)


def fetched(k: int, weight: float) -> int:
    """Return how many procedures to search for, so that `reranked` can choose k of them.

    Raises:
        BadInput: the weight is not between 0 and 1.
    """
    if not 0 <= weight <= 1:
        raise BadInput(
            f"feedback_weight must be between 0 (votes count for nothing) and 1, not {weight}"
        )
    return k + _BEYOND if weight and k > 0 else k


def reranked(found: Sequence[Found], k: int, weight: float) -> list[Found]:
    """Return the k best of what was found once votes count; without votes, the first k as they are."""
    moved = [adjustment(hit.procedure, weight) for hit in found]
    if not any(moved):
        return list(found[:k])
    scored = [
        Found(hit.procedure, hit.score + by) if by else hit
        for hit, by in zip(found, moved, strict=True)
    ]
    return sorted(scored, key=lambda hit: -hit.score)[:k]


def _least_share(part: int, whole: int) -> float:
    """The lower end of Wilson's 95 % interval of a share; 0 of nothing."""
    if not part:
        return 0.0
    share = part / whole
    reach = math.sqrt(_Z2 * (share * (1 - share) + _Z2 / (4 * whole)) / whole)
    return (share + _Z2 / (2 * whole) - reach) / (1 + _Z2 / whole)


def _is_vote(entry: dict[str, Any]) -> bool:
    texts = (entry.get("why", ""), entry.get("by", ""), entry.get("at", ""))
    return entry.get("vote") in (1, -1) and all(isinstance(text, str) for text in texts)
