"""The benchmarks as papers/pyproject.toml registers them, whether it is installed or not."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

from stepcraft.evals.benchmark import GROUP, Benchmark

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
BENCHMARKS: dict[str, Benchmark] = {
    name: EntryPoint(name, value, GROUP).load()
    for name, value in _PROJECT["project"]["entry-points"][GROUP].items()
}
