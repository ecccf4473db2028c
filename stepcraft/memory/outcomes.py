"""The outcomes of following procedures, and their effect on a search.

A procedure's score is adjusted by `weight` times the difference between its success rate and its
failure rate, each taken as the lower bound of its 95% Wilson interval (Wilson 1927). A single
outcome thus moves the score only a little (by 0.2 of the weight), ten that agree move it by 0.7 of
the weight, and many more by almost the full weight. A procedure marked as stale additionally moves
down by the full weight. A procedure that keeps failing ranks after all others, and an expired one
is left out.

The default weight, 0.1, is the typical gap between neighbouring results: for goals like those of
the bundled procedures, the median lead of the best result over the fourth is 0.08, and that of the
third over the thirteenth is 0.09. So outcomes reorder results that fit about equally well, but do
not raise results that do not fit.
"""

import hashlib
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from stepcraft.errors import BadInput
from stepcraft.memory.procedure import MOST_RUNS, Found, Outcomes, Procedure

OUTCOME_WEIGHT = 0.1
"""The maximum by which outcomes change a procedure's score; 0 switches them off."""

_BEYOND = 10
"""The number of extra procedures to fetch, so that any that move down can be replaced."""

_MOST_EXPIRED = 1_000
"""Once this many procedures are fetched, no more are fetched to replace expired ones."""

_KEEPS_FAILING = 0.5
"""A procedure keeps failing if the lower bound for its failure rate exceeds this, as it does with
four failures out of four, or seven out of eight.
"""

_Z2 = 1.959964**2
"""The square of the standard normal quantile for a 95% interval."""


def with_outcome(procedure: Procedure, *, succeeded: bool, run: str = "") -> Procedure:
    """Return a procedure with one more outcome, for `ProcedureMemory.update`.

    Args:
        procedure: The procedure.
        succeeded: Whether following it worked.
        run: The id of the run or of a tool call, which counts once no matter how often it is
            recorded.
    """
    successes, failures, _, runs = procedure.outcomes
    if run:
        mark = hashlib.blake2b(run.encode("utf-8", "replace"), digest_size=6).hexdigest()
        if mark in runs:
            return procedure
        runs = (mark, *runs)[:MOST_RUNS]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    outcomes = Outcomes(successes + succeeded, failures + (not succeeded), at, runs)
    return replace(procedure, outcomes=outcomes)


def adjustment(procedure: Procedure, weight: float) -> float:
    """Return the adjustment to a score, from `-2 * weight` to `weight`."""
    successes, failures, *_ = procedure.outcomes
    stale = bool(procedure.metadata.get("stale"))
    return weight * (_least_share(successes, failures) - _least_share(failures, successes) - stale)


def keeps_failing(procedure: Procedure) -> bool:
    """Return whether following a procedure fails significantly more often than not."""
    successes, failures, *_ = procedure.outcomes
    return _least_share(failures, successes) > _KEEPS_FAILING


def has_expired(procedure: Procedure) -> bool:
    """Return whether a procedure's last day has passed."""
    return "" < procedure.expires < datetime.now(UTC).date().isoformat()


def ranked(
    search: Callable[[int], Sequence[Found]],
    k: int,
    weight: float,
    *,
    least_score: float = -math.inf,
    known: Collection[str] = (),
) -> list[Found]:
    """Search for the k best procedures after adjusting their scores for outcomes.

    Args:
        search: Returns the given number of procedures that fit best.
        k: The maximum number of procedures to return.
        weight: The maximum by which outcomes change a score.
        least_score: The minimum score before the adjustment.
        known: The ids of procedures to leave out.

    Raises:
        BadInput: The weight is not between 0 and 1.
    """
    if not 0 <= weight <= 1:
        raise BadInput(f"outcome_weight must be between 0 and 1, not {weight}")
    wanted = k + len(known)
    count = wanted + _BEYOND if weight and k > 0 else wanted
    while True:
        hits = search(count)
        valid = [hit for hit in hits if not has_expired(hit.procedure)]
        if len(valid) >= wanted or len(hits) < count or count > _MOST_EXPIRED:
            break
        count *= 4
    moved = [
        Found(hit.procedure, hit.score + adjustment(hit.procedure, weight))
        for hit in valid
        if hit.score >= least_score and hit.procedure.id not in known
    ]
    moved.sort(key=lambda hit: (bool(weight) and keeps_failing(hit.procedure), -hit.score))
    return moved[:k]


def marks(procedure: Procedure) -> list[str]:
    """Return short notes for or against a procedure; most procedures have none."""
    successes, failures, *_ = procedure.outcomes
    tried, stale = successes + failures, procedure.metadata.get("stale")
    notes = {
        f"worked in {successes} of {tried} runs": tried,
        "keeps failing": keeps_failing(procedure),
        "expired": has_expired(procedure),
        f"out of date: {stale}": stale,
    }
    return [note for note, holds in notes.items() if holds]


def _least_share(part: int, others: int) -> float:
    """Return the lower bound of the 95% Wilson interval for a part's share, or 0 if it is 0."""
    if not part:
        return 0.0
    whole = part + others
    share = part / whole
    reach = math.sqrt(_Z2 * (share * (1 - share) + _Z2 / (4 * whole)) / whole)
    return (share + _Z2 / (2 * whole) - reach) / (1 + _Z2 / whole)
