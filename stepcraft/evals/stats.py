"""Statistics of scores and votes: intervals, tests between methods, agreement of judges, ratings of players.

Everything random takes a seed and gives the same result for the same seed. Scores are numbers, larger is better; two
methods are compared pair by pair on the same samples.
"""

import math
import random
import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import NormalDist, fmean, pvariance
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepcraft.errors import BadInput

_BLOCK = 4_000_000
"""How many random numbers are held in memory at a time."""
_FEWEST = 5
"""With fewer differences nothing is said about how many more would do."""
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Interval:
    """A mean and where it lies at a level of confidence."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference(Interval):
    """A mean difference between two methods on the same samples."""

    p: float
    """How likely a difference as large would be if the methods did not differ."""


class Record(NamedTuple):
    """On how many samples one method is better than another, worse, or as good."""

    wins: int
    losses: int
    ties: int


def paired_bootstrap(
    a: Sequence[float],
    b: Sequence[float],
    *,
    seed: int,
    resamples: int = 10_000,
    level: float = 0.95,
) -> Difference:
    """Return the mean of a - b with its interval and whether it could be chance.

    The interval is that of the bootstrap over samples, as `mean_interval` has it; where all scores are 0 or 1, it is
    the adjusted Wald interval for paired proportions (Bonett and Price 2012), as a bootstrap of few ones is too narrow.
    p is two-sided and of the randomisation test, which changes the signs of the differences at random (Fisher 1935;
    Noreen 1989): it holds with few samples, too, where no p can be less than 2^(1 - n). Where p is above 1 - level, the
    interval is widened to include 0, so that both say the same. The test holds where the methods could be exchanged; of
    differences that are 0 in the mean and far from symmetric, 20 are called different in 8 % instead of 5 % of the
    cases (`benchmarks/evaluation_proof.py`).

    Args:
        a: the scores of one method.
        b: the scores of the other on the same samples, in the same order.
        seed: of the random numbers.
        resamples: how often the samples are drawn anew, and the signs changed.
        level: the confidence of the interval, between 0 and 1.

    Raises:
        BadInput: There are no scores, their numbers differ, or one is not finite.
    """
    differences = _paired(a, b)
    _check_interval(resamples, level)
    if _are_zero_or_one(a) and _are_zero_or_one(b):
        interval = _paired_proportions(differences, level)
    else:
        interval = _bootstrap(differences, seed, resamples, level)
    p = _randomisation_p(differences, seed, resamples)
    if p <= 1 - level:
        return Difference(interval.mean, interval.low, interval.high, p)
    return Difference(interval.mean, min(interval.low, 0.0), max(interval.high, 0.0), p)


def mean_interval(
    values: Sequence[float],
    seed: int,
    *,
    resamples: int = 10_000,
    level: float = 0.95,
    shares: bool = True,
) -> Interval:
    """Return the mean of some values with its bootstrap interval.

    It is the percentile interval with the percentiles moved outwards as far as Student's t asks for so few values
    (the expanded percentile interval, Hesterberg 2015). Where all values are 0 or 1, it is Wilson's interval (1927): of
    20 values that are all 1 a bootstrap makes an interval without width, which holds a true mean of 0.95 never. Other
    values that are all the same have no width; a single one that is neither 0 nor 1 is infinitely uncertain. Of 20 values
    the interval of 95 % holds the true mean in 94 % of the cases, in 92 % where they are exponentially distributed.

    Args:
        values: The values.
        seed: of the random numbers.
        resamples: how often the values are drawn anew.
        level: the confidence of the interval, between 0 and 1.
        shares: whether values that are all 0 or 1 say how often something is so, as scores do; a number of calls does not.

    Raises:
        BadInput: There is no value, or one is not finite.
    """
    found = _finite(values)
    _check_interval(resamples, level)
    if shares and _are_zero_or_one(values):
        return _wilson(found, level)
    return _bootstrap(found, seed, resamples, level)


def _check_interval(resamples: int, level: float) -> None:
    if not 0 < level < 1 or resamples < 1:
        raise BadInput(
            f"An interval of level {level} from {resamples} resamples cannot be had: give a level between 0 and 1 "
            "and at least one resample."
        )


def _bootstrap(values: NDArray[np.float64], seed: int, resamples: int, level: float) -> Interval:
    count, mean = len(values), float(values.mean())
    if count == 1:
        return Interval(mean, -math.inf, math.inf)
    random_numbers = np.random.default_rng(seed)
    means = np.concatenate(
        [
            values[random_numbers.integers(count, size=(rows, count))].mean(axis=1)
            for rows in _blocks(resamples, count)
        ]
    )
    outwards = math.sqrt(count / (count - 1)) * _students_t(1 - (1 - level) / 2, count - 1)
    tail = _NORMAL.cdf(-outwards)
    low, high = np.quantile(means, (tail, 1 - tail))
    return Interval(mean, min(float(low), mean), max(float(high), mean))


def _are_zero_or_one(values: Sequence[float]) -> bool:
    return all(value in {0, 1} for value in values)


def _wilson(values: NDArray[np.float64], level: float) -> Interval:
    count, share = len(values), float(values.mean())
    z2 = _NORMAL.inv_cdf(1 - (1 - level) / 2) ** 2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    reach = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * count)) / count) / (1 + z2 / count)
    return Interval(
        share, max(0.0, min(middle - reach, share)), min(1.0, max(middle + reach, share))
    )


def _paired_proportions(differences: NDArray[np.float64], level: float) -> Interval:
    """Bonett and Price's interval: one more sample on which the first method alone is right, and one for the second."""
    count, mean = len(differences) + 2, float(differences.mean())
    adjusted = float(differences.sum()) / count
    uneven = (float(np.abs(differences).sum()) + 2) / count
    reach = _NORMAL.inv_cdf(1 - (1 - level) / 2) * math.sqrt((uneven - adjusted**2) / count)
    return Interval(
        mean, max(-1.0, min(adjusted - reach, mean)), min(1.0, max(adjusted + reach, mean))
    )


def _randomisation_p(differences: NDArray[np.float64], seed: int, resamples: int) -> float:
    """Return the share of random sign changes that bring the sum as far from 0 as it is, this one counted."""
    reached = abs(float(differences.sum())) - 1e-9 * float(np.abs(differences).sum())
    random_numbers = np.random.default_rng((seed, 1))
    as_far = 0
    for rows in _blocks(resamples, len(differences)):
        signs = random_numbers.integers(2, size=(rows, len(differences)), dtype=np.int8)
        sums = 2 * (signs @ differences) - differences.sum()
        as_far += int((np.abs(sums) >= reached).sum())
    return (1 + as_far) / (1 + resamples)


def _blocks(rows: int, columns: int) -> list[int]:
    """Return the heights of the blocks in which a random matrix is made."""
    height = max(1, _BLOCK // columns)
    return [min(height, rows - start) for start in range(0, rows, height)]


def _students_t(quantile: float, freedom: int) -> float:
    """Return a quantile of Student's t (Abramowitz and Stegun, 26.7.5)."""
    z = _NORMAL.inv_cdf(quantile)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term * (1 / freedom) ** power for power, term in enumerate(terms))


def samples_needed(
    differences: Sequence[float], power: float = 0.8, level: float = 0.95
) -> int | None:
    """Return how many samples would show the mean difference seen, if it is the true one.

    "Show" means: p at most 1 - level with the probability `power`, in a two-sided test of paired differences that
    scatter as these do. Where all differences that are not 0 are of one size, as of right and wrong answers, the number is
    that of McNemar's test (Connor 1987), larger by half a step of p. None where the mean is 0, or there are fewer than 5
    differences to judge by.

    Raises:
        BadInput: A difference is not finite, or the power or level is not between 0 and 1.
    """
    if not 0 < level < 1 or not 0 < power < 1:
        raise BadInput(f"Give a power and a level between 0 and 1, not {power} and {level}.")
    if len(differences) < _FEWEST:
        return None
    values = _finite(differences)
    mean, deviation = abs(float(values.mean())), float(values.std(ddof=1))
    if mean <= 1e-12 * float(np.abs(values).max()):
        return None
    z = _NORMAL.inv_cdf(1 - (1 - level) / 2)
    z_power, sizes = _NORMAL.inv_cdf(power), np.abs(values[values != 0])
    if np.allclose(sizes, sizes[0]):
        spread = math.sqrt(float((values**2).mean()))
        by_scatter = ((z * spread + z_power * float(values.std())) / mean) ** 2 + float(
            sizes[0]
        ) / mean
    else:
        by_scatter = ((z + z_power) * deviation / mean) ** 2 + z**2 / 2
    by_signs = 1 + math.log2(1 / (1 - level))
    return math.ceil(max(by_scatter, by_signs, 1))


def wins_losses_ties(a: Sequence[float], b: Sequence[float]) -> Record:
    """Return on how many samples a is better than b, worse, or as good but for rounding.

    Raises:
        BadInput: There are no scores, their numbers differ, or one is not finite.
    """
    differences = _paired(a, b)
    wins, losses = int((differences > 1e-9).sum()), int((differences < -1e-9).sum())
    return Record(wins, losses, len(differences) - wins - losses)


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided exact p of the sign test: whether wins and losses are equally likely.

    Raises:
        BadInput: A number is negative.
    """
    if wins < 0 or losses < 0:
        raise BadInput(f"{wins} wins and {losses} losses cannot be: a number is negative.")
    rounds, term, total = wins + losses, 1, 0
    for number in range(min(wins, losses) + 1):
        total += term
        term = term * (rounds - number) // (number + 1)
    return min(1.0, 2 * total / (1 << rounds))


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact p of McNemar's test: whether two methods are right equally often (McNemar 1947).

    Args:
        only_a: on how many samples only the first is right.
        only_b: on how many only the second.

    Raises:
        BadInput: A number is negative.
    """
    return sign_test(only_a, only_b)


def holm(ps: Sequence[float]) -> list[float]:
    """Return the p values of several tests, adjusted so that they hold together, in their order (Holm 1979).

    Raises:
        BadInput: A value is not between 0 and 1.
    """
    wrong = [p for p in ps if not 0 <= p <= 1]
    if wrong:
        raise BadInput(f"{wrong[0]} is no p value: it must be between 0 and 1.")
    adjusted = [0.0] * len(ps)
    reached = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        reached = max(reached, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = reached
    return adjusted


def cohen_kappa(a: Sequence[Hashable], b: Sequence[Hashable]) -> float | None:
    """Return how far two raters agree beyond chance, 1 at most (Cohen 1960).

    None where chance cannot be told: there are no ratings, or only one label was ever given.

    Raises:
        BadInput: One rated more units than the other.
    """
    if len(a) != len(b):
        raise BadInput(
            f"One rater gave {len(a)} ratings and the other {len(b)}: both must rate the same units."
        )
    counts_a, counts_b = Counter(a), Counter(b)
    by_chance = sum(counts_a[label] * counts_b[label] for label in counts_a)
    if by_chance == len(a) ** 2:
        return None
    agreed = sum(one == other for one, other in zip(a, b, strict=True))
    return (agreed * len(a) - by_chance) / (len(a) ** 2 - by_chance)


def krippendorff_alpha(ratings: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Return Krippendorff's alpha for nominal ratings: 1 is agreement, 0 chance (Krippendorff 2011).

    None where it is not defined: no unit has two ratings, or only one label was ever given.

    Args:
        ratings: a row for each rater, with a rating for each unit; None where it is missing.

    Raises:
        BadInput: The rows are not of the same length.
    """
    lengths = {len(row) for row in ratings}
    if len(lengths) > 1:
        raise BadInput(
            f"The raters have {min(lengths)} to {max(lengths)} ratings: give None where one is missing."
        )
    totals: Counter[Hashable] = Counter()
    agreed = 0.0
    for unit in zip(*ratings, strict=True):
        counts = Counter(rating for rating in unit if rating is not None)
        if counts.total() > 1:
            totals += counts
            agreed += sum(count * (count - 1) for count in counts.values()) / (counts.total() - 1)
    if len(totals) < 2:
        return None
    number = totals.total()
    by_chance = sum(count * (count - 1) for count in totals.values()) / (number - 1)
    return (agreed - by_chance) / (number - by_chance)


def trueskill(
    votes: Sequence[tuple[str, str, str | None]], players: Sequence[str], shuffles: int, seed: int
) -> dict[str, Interval]:
    """Return the players' TrueSkill ratings from pairwise votes (RAT §4: a rating starts at 25).

    A rating depends on the order of the votes, so it is averaged over shuffled orders. Its interval covers 95 % of
    what is not known: the uncertainty that TrueSkill states and the scatter among the orders. All settings are
    TrueSkill's own (sigma 25/3, beta 25/6, tau 25/300, 10 % ties expected).

    Args:
        votes: two players and the one that is preferred; None for a tie, also for "both are bad".
        players: the names of all players, also of those without a vote.
        shuffles: the number of orders.
        seed: of the shuffling.

    Raises:
        BadInput: A vote names an unknown player, does not name two, or prefers a third; there is no shuffle; or
            `trueskill` is not installed.
    """
    known = set(players)
    for one, other, preferred in votes:
        if one == other or not {one, other} <= known or preferred not in (one, other, None):
            raise BadInput(
                f"The vote {(one, other, preferred)!r} cannot be counted: it must name two of the players "
                f"{', '.join(map(repr, players))} and prefer one of them, or None."
            )
    if shuffles < 1:
        raise BadInput(f"Ratings cannot be averaged over {shuffles} orders: give at least 1.")
    if find_spec("trueskill") is None:
        raise BadInput('Ratings need trueskill: pip install "stepcraft[evals]"')
    with warnings.catch_warnings():
        # Its docstrings hold backslashes that Python warns of while it compiles them.
        warnings.simplefilter("ignore")
        from trueskill import TrueSkill, rate_1vs1  # noqa: PLC0415 - an extra

    game = TrueSkill(mu=25.0, sigma=25 / 3, beta=25 / 6, tau=25 / 300, draw_probability=0.1)
    order = list(votes)
    shuffler = random.Random(seed)  # noqa: S311 - nothing secret
    rated: dict[str, list[tuple[float, float]]] = {player: [] for player in players}
    for _ in range(shuffles):
        shuffler.shuffle(order)
        ratings = {player: game.create_rating() for player in players}
        for one, other, preferred in order:
            winner, loser = (other, one) if preferred == other else (one, other)
            ratings[winner], ratings[loser] = rate_1vs1(
                ratings[winner], ratings[loser], drawn=preferred is None, env=game
            )
        for player, rating in ratings.items():
            rated[player].append((float(rating.mu), float(rating.sigma)))
    return {player: _averaged(found) for player, found in rated.items()}


def _averaged(rated: list[tuple[float, float]]) -> Interval:
    """Return the mean of normal distributions, with 95 % of the normal one that has their common variance."""
    means = [mean for mean, _ in rated]
    mean = fmean(means)
    deviation = math.sqrt(pvariance(means, mean) + fmean(sigma**2 for _, sigma in rated))
    reach = _NORMAL.inv_cdf(0.975) * deviation
    return Interval(mean, mean - reach, mean + reach)


def _paired(a: Sequence[float], b: Sequence[float]) -> NDArray[np.float64]:
    if len(a) != len(b):
        raise BadInput(
            f"{len(a)} scores cannot be paired with {len(b)}: both must be of the same samples."
        )
    return _finite(a) - _finite(b)


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    found = np.asarray(values, dtype=np.float64)
    if not len(found):
        raise BadInput("There are no scores to compare: give at least one.")
    if not np.isfinite(found).all():
        raise BadInput(
            f"{found[~np.isfinite(found)][0]} is no score: leave samples without a score out."
        )
    return found
