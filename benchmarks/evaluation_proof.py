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
from collections.abc import Callable
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
COLUMNS = [f"n = {count}" for count in COUNTS]
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
Interval = Callable[[Numbers, int], tuple[float, float]]


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


def coverage(interval: Interval, draw: Draw, mean: float, count: int, runs: int) -> float:
    """The share of the runs in which an interval holds the true mean."""
    random = np.random.default_rng(count)
    found = [interval(draw(random, count), seed) for seed in range(runs)]
    return sum(low <= mean <= high for low, high in found) / runs


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


def false_rates(runs: int) -> Table:
    """How often a difference is found where there is none."""
    table = Table(
        "false: difference found where there is none",
        *COLUMNS,
        title=f"{runs:,} runs a cell, p < 0.05",
    )
    cases: list[tuple[str, Test, Pair]] = [
        ("randomisation, normal differences", bootstrap_p, normal_pair(0)),
        ("randomisation, F1 of equal methods", bootstrap_p, f1_pair),
        ("randomisation, right or wrong", bootstrap_p, right_pair(0)),
        ("randomisation, skewed differences", bootstrap_p, skewed_pair),
        ("sign test, normal differences", sign_p, normal_pair(0)),
        ("McNemar, right or wrong", mcnemar_p, right_pair(0)),
    ]
    for name, test, pair in cases:
        table.add_row(name, *(f"{rate(test, pair, count, runs):.1%}" for count in COUNTS))
    together: list[tuple[str, Test, Draw]] = [
        ("randomisation, F1", bootstrap_p, f1_like),
        ("sign test, F1", sign_p, f1_like),
        ("McNemar, right or wrong", mcnemar_p, right(0.5)),
    ]
    for name, test, draw in together:
        found = (f"{any_of_three(test, draw, count, runs):.1%}" for count in COUNTS)
        table.add_row(f"Holm over 4 methods: {name}", *found)
    return table


def powers(runs: int) -> Table:
    """How often a difference is found that is there."""
    table = Table("power: difference found that is there (promised)", *COLUMNS)
    for effect in (0.2, 0.5, 1.0):
        found = [rate(bootstrap_p, normal_pair(effect), count, runs) for count in COUNTS]
        promised = [NORMAL.cdf(effect * math.sqrt(count) - 1.96) for count in COUNTS]
        cells = [f"{one:.1%} ({other:.0%})" for one, other in zip(found, promised, strict=True)]
        table.add_row(f"randomisation, {effect} standard deviations", *cells)
        cells = [f"{rate(sign_p, normal_pair(effect), count, runs):.1%}" for count in COUNTS]
        table.add_row(f"sign test, {effect} standard deviations", *cells)
    for points in (0.1, 0.2, 0.3):
        for name, test in (("randomisation", bootstrap_p), ("McNemar", mcnemar_p)):
            cells = [f"{rate(test, right_pair(points), count, runs):.1%}" for count in COUNTS]
            table.add_row(f"{name}, +{points * 100:.0f} points", *cells)
    for points in (0.1, 0.2, 0.3):
        ours, theirs = right_pair(points)(np.random.default_rng(0), 100_000)
        needed = samples_needed(list(ours - theirs)) or 0
        found = rate(mcnemar_p, right_pair(points), needed, runs)
        table.add_row(
            f"McNemar, +{points * 100:.0f} points: the {needed} samples of samples_needed",
            f"{found:.1%} (80%)",
        )
    for seen in ([1.5, -0.5] * 30, [1.2, -0.8] * 30):
        needed = samples_needed(seen) or 0
        effect = float(np.mean(seen) / np.std(seen, ddof=1))
        found = rate(bootstrap_p, normal_pair(effect), needed, runs)
        table.add_row(
            f"randomisation, {effect:.2f}: the {needed} samples of samples_needed",
            f"{found:.1%} (80%)",
        )
    return table


def coverages(runs: int) -> Table:
    """How often an interval holds the true mean."""
    table = Table("coverage of the 95 % interval", *COLUMNS)
    cases: list[tuple[str, Interval, Draw, float]] = [
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
    ]
    for name, interval, draw, mean in cases:
        table.add_row(
            name, *(f"{coverage(interval, draw, mean, count, runs):.1%}" for count in COUNTS)
        )
    return table


def judges(runs: int) -> Table:
    """What comes of votes of known strength and order bias."""
    table = Table(
        "better on",
        "strength",
        "says the first",
        title=f"judges, 10 votes a sample, {runs:,} runs a cell",
    )
    for count in COUNTS[:2]:
        for column in (f"found, n = {count}", "for the first", "warned"):
            table.add_column(column)
    for better, strength, bias in (
        (0.5, 0.8, 0.0),
        (0.5, 0.8, 0.5),
        (0.7, 0.8, 0.0),
        (0.7, 0.6, 0.0),
        (0.7, 0.8, 0.2),
        (0.7, 0.8, 0.5),
        (0.7, 0.8, 1.0),
    ):
        cells: list[str] = []
        for count in COUNTS[:2]:
            random = np.random.default_rng(count)
            found = [
                preferences(votes(random, count, better, strength, bias))[0] for _ in range(runs)
            ]
            share = sum(one.p < 0.05 for one in found) / runs
            measured = np.mean([one.order_bias or 0.0 for one in found])
            warned = sum(one.is_order_biased for one in found) / runs
            cells += [f"{share:.1%}", f"{measured:.2f}", f"{warned:.0%}"]
        table.add_row(f"{better:.0%}", f"{strength:.0%}", f"{bias:.0%}", *cells)
    return table


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    console = Console(width=130)
    for made in (false_rates, powers, coverages):
        console.print(made(runs))
    console.print(judges(max(1, runs // 2)))


if __name__ == "__main__":
    main()
