"""HotpotQA: questions whose answer takes several passages."""

from stepcraft.evals.benchmarks.benchmark import Benchmark

BENCHMARKS = (
    Benchmark(
        "hotpotqa",
        "questions of several hops with short answers: exact match and F1",
        "CC BY-SA 4.0",
        "https://hotpotqa.github.io",
    ),
)
