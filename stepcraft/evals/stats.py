"""Statistics of scores: means with their intervals, and tests of two methods on the same samples.

`benchmarks/evaluation_proof.py` simulates how often they are right.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

LEVEL = 0.95
"""The confidence of all intervals."""


@dataclass(frozen=True)
class Interval:
    """A mean and where it lies at a confidence of 95 %; infinite ends where nothing is known."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference(Interval):
    """A mean difference between two methods on the same samples."""

    p: float
    """Of the paired t-test, two-sided."""


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean of scores: Wilson's interval where all are 0 or 1, else Student's t.

    The interval of scores between 0 and 1 is cut to that range.
    """
    if set(values) <= {0, 1}:
        return share(round(sum(values)), len(values))
    mean, reach, _ = _student(values)
    low, high = mean - reach, mean + reach
    if all(0 <= value <= 1 for value in values):
        low, high = max(0.0, low), min(1.0, high)
    return Interval(mean, low, high)


def share(count: int, total: int) -> Interval:
    """Return a share with Wilson's interval (1927)."""
    z2, mean = NormalDist().inv_cdf((1 + LEVEL) / 2) ** 2, count / total
    middle = (count + z2 / 2) / (total + z2)
    reach = math.sqrt(z2 * (total * mean * (1 - mean) + z2 / 4)) / (total + z2)
    return Interval(mean, max(0.0, middle - reach), min(1.0, middle + reach))


def paired(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Return the mean of a - b with Student's t-interval and the p of the paired t-test."""
    mean, reach, p = _student([x - y for x, y in zip(a, b, strict=True)])
    return Difference(mean, mean - reach, mean + reach, p)


def _student(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean, the reach of its t-interval, and the p of a mean of 0."""
    mean, count = fmean(values), len(values)
    error = stdev(values, mean) / math.sqrt(count) if count > 1 else 0.0
    if error <= 1e-12 * abs(mean):
        # Values that are all the same have no scatter to go by; the sign test still holds.
        p = sign_test(count, 0) if mean else 1.0
        return mean, 0.0 if p <= 1 - LEVEL else math.inf, p
    return mean, error * _t_quantile(count - 1), _t_tails(mean / error, count - 1)


def _t_quantile(freedom: int) -> float:
    low, high = 1.0, 1_000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_tails(middle, freedom) > 1 - LEVEL else (low, middle)
    return low


def _t_tails(t: float, freedom: int) -> float:
    """Return how likely |T| > |t| is (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    theta = math.atan(abs(t) / math.sqrt(freedom))
    cosine, sine = math.cos(theta), math.sin(theta)
    term = total = 1.0 if freedom % 2 == 0 else cosine
    for number in range(2 + freedom % 2, freedom, 2):
        term *= cosine**2 * (number - 1) / number
        total += term
    if freedom % 2 == 0:
        return max(0.0, 1 - sine * total)
    within = theta + (sine * total if freedom > 1 else 0.0)
    return max(0.0, 1 - 2 * within / math.pi)


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided exact p of the sign test; of right and wrong it is McNemar's test."""
    rounds = wins + losses
    as_few = sum(math.comb(rounds, count) for count in range(min(wins, losses) + 1))
    return min(1.0, 2 * as_few / (1 << rounds))


def holm(ps: Sequence[float]) -> list[float]:
    """Return the p of several tests, adjusted so that they hold together (Holm 1979)."""
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = highest
    return adjusted
