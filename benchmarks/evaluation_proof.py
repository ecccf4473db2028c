"""How often the statistics of evaluations are right, by simulation: `python benchmarks/evaluation_proof.py [RUNS]`.

Nothing is asked of a model. 1,000 runs are simulated for each row:

- false: how often a test finds a difference at p < 0.05 where there is none; 5 % are allowed, and with 1,000 runs up to
  6.4 % happen by chance;
- power: how often it finds one that is there, beside the rate that the formula of the normal test promises;
- coverage: how often the 95 % interval holds the true mean;
- judges: votes of known strength and order bias, counted as those of a real judge.
"""

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from stepcraft.evals.stats import (
    holm,
    mcnemar,
    mean_interval,
    paired_bootstrap,
    samples_needed,
    sign_test,
    wins_losses_ties,
)
from stepcraft.evals.votes import Judgement, preferences

COUNTS = (20, 60, 200)
RESAMPLES = 1_000
NORMAL = NormalDist()
Numbers = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Numbers]
Pair = Callable[[np.random.Generator, int], tuple[Numbers, Numbers]]


def f1_like(random: np.random.Generator, count: int) -> Numbers:
    """Scores such as F1: 40 % are 0, 30 % are 1, the others between; 0.45 in the mean."""
    kind = random.random(count)
    return np.where(kind < 0.4, 0.0, np.where(kind < 0.7, 1.0, random.random(count)))


def skewed(random: np.random.Generator, count: int) -> Numbers:
    """Numbers of an exponential distribution with the mean 0."""
    return random.exponential(1.0, count) - 1.0


def right(share: float) -> Draw:
    """Answers that are right (1) at this rate, or wrong (0)."""
    return lambda random, count: (random.random(count) < share).astype(np.float64)


def normal_pair(effect: float) -> Pair:
    """Scores whose differences have this mean and the standard deviation 1."""
    return lambda random, count: (random.normal(effect, 1.0, count), np.zeros(count))


def f1_pair(random: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
    """Scores such as F1 of two equal methods, alike on half of the samples."""
    a, b = f1_like(random, count), f1_like(random, count)
    return a, np.where(random.random(count) < 0.5, a, b)


def skewed_pair(random: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
    """Scores whose differences have the mean 0 and are not symmetric: what a test of the mean finds hardest."""
    return skewed(random, count), np.zeros(count)


def right_pair(points: float) -> Pair:
    """Right and wrong answers at rates of 0.5 and so much more; two of three samples are of the same difficulty to both."""

    def draw(random: np.random.Generator, count: int) -> tuple[Numbers, Numbers]:
        common = random.random(count)
        own = np.where(random.random(count) < 2 / 3, common, random.random(count))
        return (own < 0.5 + points).astype(np.float64), (common < 0.5).astype(np.float64)

    return draw


def bootstrap_p(a: Numbers, b: Numbers, seed: int) -> float:
    """Of the randomisation test that stands beside the bootstrap interval."""
    return paired_bootstrap(a, b, seed=seed, resamples=RESAMPLES).p


def sign_p(a: Numbers, b: Numbers, _seed: int) -> float:
    """Of the sign test on wins and losses."""
    wins, losses, _ = wins_losses_ties(a, b)
    return sign_test(wins, losses)


def mcnemar_p(a: Numbers, b: Numbers, _seed: int) -> float:
    """Of McNemar's test."""
    return mcnemar(int((a > b).sum()), int((b > a).sum()))


Test = Callable[[Numbers, Numbers, int], float]
TESTS: dict[str, Test] = {"randomisation": bootstrap_p, "sign": sign_p, "McNemar": mcnemar_p}


def rate(test: Test, pair: Pair, count: int, runs: int) -> float:
    """The share of the runs in which a test finds a difference."""
    random = np.random.default_rng(count)
    return sum(test(*pair(random, count), seed) < 0.05 for seed in range(runs)) / runs


def any_of_three(test: Test, draw: Draw, count: int, runs: int) -> float:
    """The share of the runs in which one of three methods is found to differ from a fourth, with Holm's adjustment."""
    random = np.random.default_rng(count)
    found = 0
    for seed in range(runs):
        cheapest = draw(random, count)
        found += min(holm([test(draw(random, count), cheapest, seed) for _ in range(3)])) < 0.05
    return found / runs


def coverage(
    interval: Callable[[Numbers, int], tuple[float, float]], draw: Draw, mean: float
) -> Iterator[float]:
    """The share of the runs in which an interval holds the true mean, for each count."""
    for count in COUNTS:
        random = np.random.default_rng(count)
        found = [interval(draw(random, count), seed) for seed in range(RUNS)]
        yield sum(low <= mean <= high for low, high in found) / RUNS


def of_mean(values: Numbers, seed: int) -> tuple[float, float]:
    """The interval of a mean."""
    found = mean_interval(values, seed, resamples=RESAMPLES)
    return found.low, found.high


def of_difference(pair: Numbers, seed: int) -> tuple[float, float]:
    """The interval of a difference; the pair is one array behind the other."""
    a, b = np.split(pair, 2)
    found = paired_bootstrap(a, b, seed=seed, resamples=RESAMPLES)
    return found.low, found.high


def joined(pair: Pair) -> Draw:
    """A pair as one array behind the other."""
    return lambda random, count: np.concatenate(pair(random, count))


def votes(
    random: np.random.Generator, count: int, better: float, strength: float, bias: float
) -> list[Judgement]:
    """Ten votes a sample of a judge that names the first answer with the probability `bias`, else says what it thinks.

    The method's answer is the better one on the share `better` of the samples, and a judge that thinks finds the
    better answer with the probability `strength`.
    """
    made: list[Judgement] = []
    for sample in range(count):
        is_better = random.random() < better
        for number in range(10):
            first = number % 2 == 0
            thought = (random.random() < strength) == is_better
            verdict = first if random.random() < bias else thought
            made.append(
                Judgement(
                    kind="vote",
                    judge="simulated",
                    method="method",
                    against="cheapest",
                    id=str(sample),
                    number=number,
                    reply="",
                    error="",
                    usage={},
                    verdict="win" if verdict else "loss",
                    shown_first=first,
                    longer=0,
                )
            )
    return made


def judges(table: Table, runs: int) -> None:
    """Rows of judges."""
    for better, strength, bias in (
        (0.5, 0.8, 0),
        (0.5, 0.8, 0.5),
        (0.7, 0.8, 0),
        (0.7, 0.8, 0.5),
        (0.7, 0.6, 0),
        (0.7, 0.8, 1),
    ):
        cells = []
        for count in COUNTS[:2]:
            random = np.random.default_rng(count)
            found = [preferences(votes(random, count, better, strength, bias))[0] for _ in range(runs)]
            share = sum(one.p < 0.05 for one in found) / runs
            measured = np.mean([one.order_bias or 0.0 for one in found])
            warned = sum(one.is_order_biased for one in found) / runs
            cells += [f"{share:.1%}", f"{measured:.2f}", f"{warned:.0%}"]
        table.add_row(f"{better:.0%}", f"{strength:.0%}", f"{bias:.0%}", *cells)


def main() -> None:
    """Print the tables."""
    console = Console(width=130)
    counts = [f"n = {count}" for count in COUNTS]

    table = Table("false: difference found where there is none", *counts, title=f"{RUNS:,} runs a cell")
    cases: list[tuple[str, Test, Pair]] = [
        ("randomisation, normal differences", bootstrap_p, normal_pair(0)),
        ("randomisation, F1 of equal methods", bootstrap_p, f1_pair),
        ("randomisation, right or wrong", bootstrap_p, right_pair(0)),
        ("randomisation, skewed differences", bootstrap_p, skewed_pair),
        ("sign test, normal differences", sign_p, normal_pair(0)),
        ("McNemar, right or wrong", mcnemar_p, right_pair(0)),
    ]
    for name, test, pair in cases:
        table.add_row(name, *(f"{rate(test, pair, count, RUNS):.1%}" for count in COUNTS))
    for name, test, draw in (
        ("Holm over 4 methods: randomisation, F1", bootstrap_p, f1_like),
        ("Holm over 4 methods: sign test, F1", sign_p, f1_like),
        ("Holm over 4 methods: McNemar, right or wrong", mcnemar_p, right(0.5)),
    ):
        table.add_row(name, *(f"{any_of_three(test, draw, count, RUNS):.1%}" for count in COUNTS))
    console.print(table)

    table = Table("power: difference found that is there (promised)", *counts)
    for effect in (0.2, 0.5, 1.0):
        for name, test in (("randomisation", bootstrap_p), ("sign test", sign_p)):
            cells = []
            for count in COUNTS:
                promised = (
                    f" ({NORMAL.cdf(effect * math.sqrt(count) - 1.96):.0%})" if test is bootstrap_p else ""
                )
                cells.append(f"{rate(test, normal_pair(effect), count, RUNS):.1%}{promised}")
            table.add_row(f"{name}, {effect} standard deviations", *cells)
    for points in (0.1, 0.2, 0.3):
        for name, test in (("randomisation", bootstrap_p), ("McNemar", mcnemar_p)):
            cells = [f"{rate(test, right_pair(points), count, RUNS):.1%}" for count in COUNTS]
            table.add_row(f"{name}, +{points * 100:.0f} points", *cells)
    needed = samples_needed([*([1.5, -0.5] * 30)]) or 0
    table.add_row(
        f"randomisation with the {needed} samples that samples_needed asks for (80 %)",
        f"{rate(bootstrap_p, normal_pair(0.5 / np.std([1.5, -0.5] * 30, ddof=1)), needed, RUNS):.1%}",
    )
    console.print(table)

    table = Table("coverage of the 95 % interval", *counts)
    for name, interval, draw, mean in (
        ("mean, normal", of_mean, lambda random, count: random.normal(3, 2, count), 3.0),
        ("mean, F1", of_mean, f1_like, 0.45),
        ("mean, skewed", of_mean, skewed, 0.0),
        ("mean, 50 % right", of_mean, right(0.5), 0.5),
        ("mean, 80 % right", of_mean, right(0.8), 0.8),
        ("mean, 95 % right", of_mean, right(0.95), 0.95),
        ("difference, normal, 0.5", of_difference, joined(normal_pair(0.5)), 0.5),
        ("difference, F1, 0", of_difference, joined(f1_pair), 0.0),
        ("difference, skewed, 0", of_difference, joined(skewed_pair), 0.0),
        ("difference, right or wrong, 0", of_difference, joined(right_pair(0)), 0.0),
        ("difference, right or wrong, +20 points", of_difference, joined(right_pair(0.2)), 0.2),
        ("difference, right or wrong, +50 points", of_difference, joined(right_pair(0.5)), 0.5),
    ):
        table.add_row(name, *(f"{share:.1%}" for share in coverage(interval, draw, mean)))
    console.print(table)

    runs = max(1, RUNS // 2)
    table = Table(
        "better on", "strength", "says the first", title=f"judges, 10 votes a sample, {runs:,} runs a cell"
    )
    for count in COUNTS[:2]:
        for column in (f"found, n = {count}", "for the first", "warned"):
            table.add_column(column)
    judges(table, runs)
    console.print(table)


if __name__ == "__main__":
    RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    main()
