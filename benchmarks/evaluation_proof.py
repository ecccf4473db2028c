"""How often the statistics of evaluations are right, by simulation: `python benchmarks/evaluation_proof.py [RUNS]`.

Nothing is asked of a model. 1,000 runs are simulated for each row:

- false: how often a test finds a difference at p < 0.05 where there is none; 5 % are allowed, and with 1,000 runs up to
  6.4 % happen by chance;
- power: how often it finds one that is there;
- coverage: how often the 95 % interval holds the true mean.
"""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from stepcraft.evals.stats import holm, mean_interval, paired, sign_test

COUNTS = (20, 60, 200)
COLUMNS = [f"n = {count}" for count in COUNTS]
Numbers = NDArray[np.float64]
Pair = Callable[[np.random.Generator, int], tuple[Numbers, Numbers]]
Test = Callable[[Numbers, Numbers], float]


def f1_like(random: np.random.Generator, count: int) -> Numbers:
    """Scores such as F1: 40 % are 0, 30 % are 1, the others between; 0.45 in the mean."""
    kind = random.random(count)
    return np.where(kind < 0.4, 0.0, np.where(kind < 0.7, 1.0, random.random(count)))


def normal_pair(effect: float) -> Pair:
    """Scores whose differences have this mean and the standard deviation 1."""
    return lambda random, count: (random.normal(effect, 1.0, count), np.zeros(count))


def f1_pair(random: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
    """Scores such as F1 of two equal methods, alike on half of the samples."""
    a, b = f1_like(random, count), f1_like(random, count)
    return a, np.where(random.random(count) < 0.5, a, b)


def skewed_pair(random: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
    """Scores whose differences have the mean 0 and are far from symmetric."""
    return random.exponential(1.0, count) - 1.0, np.zeros(count)


def right_pair(points: float) -> Pair:
    """Right and wrong answers at rates of 0.5 and so much more; two of three samples are as hard for both."""

    def draw(random: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
        common = random.random(count)
        ours = np.where(random.random(count) < 2 / 3, common, random.random(count))
        return (ours < 0.5 + points).astype(np.float64), (common < 0.5).astype(np.float64)

    return draw


def t_test(a: Numbers, b: Numbers) -> float:
    """P of the paired t-test."""
    return paired(a.tolist(), b.tolist()).p


def signs(a: Numbers, b: Numbers) -> float:
    """P of the exact sign test."""
    return sign_test(int((a > b).sum()), int((b > a).sum()))


def rate(test: Test, pair: Pair, count: int, runs: int) -> float:
    """The share of the runs in which a test finds a difference."""
    random = np.random.default_rng(count)
    return sum(test(*pair(random, count)) < 0.05 for _ in range(runs)) / runs


def any_of_three(test: Test, pair: Pair, count: int, runs: int) -> float:
    """The share of the runs in which one of three comparisons finds a difference, with Holm's adjustment."""
    random = np.random.default_rng(count)
    return (
        sum(min(holm([test(*pair(random, count)) for _ in range(3)])) < 0.05 for _ in range(runs))
        / runs
    )


def coverage(pair: Pair, mean: float, count: int, runs: int, *, of_first: bool) -> float:
    """The share of the runs in which the interval of the first scores, or of the difference, holds the true mean."""
    random = np.random.default_rng(count)
    hits = 0
    for _ in range(runs):
        a, b = (each.tolist() for each in pair(random, count))
        interval = mean_interval(a) if of_first else paired(a, b)
        hits += interval.low <= mean <= interval.high
    return hits / runs


def main(runs: int) -> None:
    """Print the tables."""
    console = Console(width=120)
    false = Table("false: difference found where there is none", *COLUMNS, title=f"{runs:,} runs")
    for name, test, pair in (
        ("t-test, normal", t_test, normal_pair(0)),
        ("t-test, F1 of equal methods", t_test, f1_pair),
        ("t-test, skewed", t_test, skewed_pair),
        ("t-test, right or wrong", t_test, right_pair(0)),
        ("sign test, right or wrong", signs, right_pair(0)),
        ("sign test, F1 of equal methods", signs, f1_pair),
    ):
        false.add_row(name, *(f"{rate(test, pair, count, runs):.1%}" for count in COUNTS))
    for name, test, pair in (
        ("Holm over 3: t-test, F1", t_test, f1_pair),
        ("Holm over 3: sign test, right or wrong", signs, right_pair(0)),
    ):
        false.add_row(name, *(f"{any_of_three(test, pair, count, runs):.1%}" for count in COUNTS))
    power = Table("power: difference found that is there", *COLUMNS)
    for effect in (0.2, 0.5, 1.0):
        cells = (f"{rate(t_test, normal_pair(effect), count, runs):.1%}" for count in COUNTS)
        power.add_row(f"t-test, {effect} standard deviations", *cells)
    for points in (0.1, 0.2, 0.3):
        cells = (f"{rate(signs, right_pair(points), count, runs):.1%}" for count in COUNTS)
        power.add_row(f"sign test, +{points * 100:.0f} points", *cells)
    held = Table("coverage of the 95 % interval", *COLUMNS)
    for name, pair, mean, of_first in (
        ("mean, F1", f1_pair, 0.45, True),
        ("mean, 50 % right", right_pair(0), 0.5, True),
        ("mean, 95 % right", right_pair(0.45), 0.95, True),
        ("difference, normal, 0.5", normal_pair(0.5), 0.5, False),
        ("difference, F1, 0", f1_pair, 0.0, False),
        ("difference, skewed, 0", skewed_pair, 0.0, False),
        ("difference, right or wrong, 0", right_pair(0), 0.0, False),
        ("difference, right or wrong, +20 points", right_pair(0.2), 0.2, False),
    ):
        cells = (f"{coverage(pair, mean, n, runs, of_first=of_first):.1%}" for n in COUNTS)
        held.add_row(name, *cells)
    for table in (false, power, held):
        console.print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
