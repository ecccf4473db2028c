"""Statistics of scores: means with intervals, and paired tests of two methods.

`benchmarks/evaluation_proof.py` checks by simulation how often they are right.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Any

from stepcraft.errors import BadInput

LEVEL = 0.95
"""The confidence level of all intervals."""


@dataclass(frozen=True)
class Interval:
    """A mean with its 95% confidence interval, whose bounds are infinite if unknown."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference(Interval):
    """The mean difference between two methods on the same samples."""

    p: float
    """The two-sided p-value of the paired t-test."""


def mean_interval(values: Sequence[float]) -> Interval:
    """Return a mean with its Wilson interval if all scores are 0 or 1, or else its t-interval.

    The interval of scores between 0 and 1 is clipped to that range.
    """
    if set(values) <= {0, 1}:
        return share(round(sum(values)), len(values))
    difference = _student(values, 0.0 if _are_shares(values) else -math.inf)
    return Interval(difference.mean, difference.low, difference.high)


def share(count: int, total: int) -> Interval:
    """Return a proportion with its Wilson score interval (Wilson 1927)."""
    ends = scipy_stats().binomtest(count, total).proportion_ci(LEVEL, "wilson")
    return Interval(count / total, float(ends.low), float(ends.high))


def paired(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Return the mean of a - b with Student's t-interval and the p-value of the paired t-test.

    If all differences are the same, the p-value is that of the sign test.
    """
    least = -1.0 if _are_shares([*a, *b]) else -math.inf
    return _student([x - y for x, y in zip(a, b, strict=True)], least)


def _are_shares(values: Sequence[float]) -> bool:
    return all(0 <= value <= 1 for value in values)


def _student(values: Sequence[float], least: float) -> Difference:
    """Return the mean, its interval, and the p-value under a true mean of 0.

    Args:
        values: The values, which are at most 1 unless `least` is infinite.
        least: The minimum possible value.
    """
    mean, count, most = fmean(values), len(values), 1.0 if math.isfinite(least) else math.inf
    if count > 1 and stdev(values, mean) > 1e-11 * abs(mean):
        test = scipy_stats().ttest_1samp(values, 0.0)
        low, high = map(float, test.confidence_interval(LEVEL))
        return Difference(mean, max(least, low), min(most, high), float(test.pvalue))
    # Identical values have no spread to estimate. By the exact binomial bound (Clopper and Pearson
    # 1934), at least the share `_alike` of all values is the same; the others may be anything.
    low, high = (_alike(count) * mean + (1 - _alike(count)) * end for end in (least, most))
    return Difference(mean, low, high, sign_test(count, 0) if mean else 1.0)


def _alike(count: int) -> float:
    return float(((1 - LEVEL) / 2) ** (1 / count))


def sign_test(wins: int, losses: int) -> float:
    """Return the exact two-sided p-value of the sign test (McNemar's, for binary scores)."""
    return float(scipy_stats().binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def holm(ps: Sequence[float], families: Sequence[object] = ()) -> list[float]:
    """Return the p-values of several tests, adjusted for multiple comparisons (Holm 1979).

    Args:
        ps: The p-value of each test.
        families: The family of each test, or empty if each is its own; tests in the same family
            count as one.
    """
    families = families or range(len(ps))
    adjusted, highest = [0.0] * len(ps), 0.0
    left, passed = len({*families}), set[object]()
    for place in sorted(range(len(ps)), key=ps.__getitem__):
        others = len(passed - {families[place]})
        highest = max(highest, min(1.0, (left - others) * ps[place]))
        adjusted[place] = highest
        passed.add(families[place])
    return adjusted


def power(count: int, points: float) -> float:
    """Return the power of the sign test to detect a difference in accuracy (p < 0.05).

    It is assumed that one method is right on half of the samples and the other on `points` more,
    and that two thirds of the samples are equally hard for both, as in
    `benchmarks/evaluation_proof.py`.

    Args:
        count: The number of samples, at most a few hundred.
        points: The difference between the proportions of right answers, up to 0.5.
    """
    lost = (0.5 - points) / 6
    won = lost + points
    binom = scipy_stats().binom
    rounds = range(count + 1)  # the number of samples on which the methods differ
    few = binom.ppf((1 - LEVEL) / 2, rounds, 0.5) - 1  # significant with so few losses, or wins
    tails = sum(binom.cdf(few, rounds, rate / (won + lost)) for rate in (won, lost))
    return float(binom.pmf(rounds, count, won + lost) @ tails)


def kappa(pairs: Sequence[tuple[str, str]]) -> Interval:
    """Return Cohen's kappa (1960) with its interval (Fleiss, Cohen and Everitt 1969).

    Args:
        pairs: Both raters' labels for each item.
    """
    count, both = len(pairs), Counter(pairs)
    ours, theirs = (Counter(each) for each in zip(*pairs, strict=True))
    categories = ours.keys() | theirs.keys()
    agreed = sum(both[each, each] for each in categories) / count
    expected = sum(ours[each] * theirs[each] for each in categories) / count**2
    if 1 in (len(ours), len(theirs)):  # a rater who uses only one label distinguishes nothing
        return Interval(float(agreed == 1), -math.inf, math.inf)
    mean = (agreed - expected) / (1 - expected)
    if agreed == 1:  # by the exact bound, as for differences that are all the same
        return Interval(1.0, (_alike(count) - expected) / (1 - expected), 1.0)
    spread = sum(
        both[a, b] / count * ((a == b) - (ours[b] + theirs[a]) / count * (1 - mean)) ** 2
        for a in categories
        for b in categories
    )
    variance = (spread - (mean - expected * (1 - mean)) ** 2) / (1 - expected) ** 2 / count
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt(max(0.0, variance))
    return Interval(mean, max(-1.0, mean - reach), min(1.0, mean + reach))


def scipy_stats() -> Any:  # noqa: ANN401 - a module without types
    """Return the module scipy.stats.

    Raises:
        BadInput: scipy is not installed.
    """
    try:
        from scipy import stats  # noqa: PLC0415 - an extra
    except ImportError:
        raise BadInput('statistics need scipy: pip install "stepcraft[evals]"') from None
    return stats
