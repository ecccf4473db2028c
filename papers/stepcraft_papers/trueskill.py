"""TrueSkill: ratings of methods from a judge's votes (RAT §4)."""

import random
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pvariance

from stepcraft.errors import BadInput
from stepcraft.evals.votes import majority, read_judgements

_MOST_RATED = 10_000
"""The maximum number of votes to rate, summed over all orders."""
_SEED = 0


@dataclass(frozen=True)
class Rating:
    """The rating of a method; it starts at 25."""

    method: str
    mean: float
    sigma: float
    """The uncertainty: TrueSkill's own, combined with the spread between orders of the votes."""


def ratings(directory: Path) -> dict[str, list[Rating]]:
    """Return the methods' ratings by judge; each sample counts as one vote, by majority.

    Raises:
        BadInput: There are no votes, or a line in their file is damaged.
    """
    counts: dict[str, dict[tuple[str, str, str], Counter[str]]] = {}
    for vote in read_judgements(directory):
        if vote["kind"] == "vote" and "verdict" in vote:
            pair = vote["method"], vote["against"], vote["id"]
            counts.setdefault(vote["judge"], {}).setdefault(pair, Counter())[vote["verdict"]] += 1
    if not counts:
        raise BadInput(f"no judge has voted in {directory}; start `stepcraft eval judge`")
    return {
        judge: rate(
            [
                (method, against, {"win": method, "loss": against}.get(majority(verdicts)))
                for (method, against, _), verdicts in pairs.items()
            ]
        )
        for judge, pairs in counts.items()
    }


def rate(votes: Sequence[tuple[str, str, str | None]]) -> list[Rating]:
    """Return the players' ratings from pairwise votes.

    A rating depends on the order of the votes, so it is averaged over shuffled orders, which are
    the same each time. All settings are TrueSkill's defaults (sigma 25/3, beta 25/6, tau 25/300,
    draw probability 10%).

    Args:
        votes: Two players and the preferred one, or None for a tie or "both are bad".
    """
    with warnings.catch_warnings():  # its docstrings hold backslashes that Python warns of
        warnings.simplefilter("ignore")
        from trueskill import TrueSkill, rate_1vs1  # noqa: PLC0415 - within the block

    game = TrueSkill(mu=25.0, sigma=25 / 3, beta=25 / 6, tau=25 / 300, draw_probability=0.1)
    order, shuffler = sorted(votes, key=str), random.Random(_SEED)  # noqa: S311 - nothing secret
    rated: dict[str, list[tuple[float, float]]] = {}
    for _ in range(max(1, min(100, _MOST_RATED // len(votes)))):
        shuffler.shuffle(order)
        players = {player: game.create_rating() for vote in votes for player in vote[:2]}
        for a, b, preferred in order:
            winner, loser = (b, a) if preferred == b else (a, b)
            players[winner], players[loser] = rate_1vs1(
                players[winner], players[loser], drawn=preferred is None, env=game
            )
        for player, rating in players.items():
            rated.setdefault(player, []).append((rating.mu, rating.sigma))
    return [
        Rating(
            player,
            fmean(mu for mu, _ in pairs),
            (fmean(s**2 for _, s in pairs) + pvariance([mu for mu, _ in pairs])) ** 0.5,
        )
        for player, pairs in rated.items()
    ]
