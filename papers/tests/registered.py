"""What papers/pyproject.toml registers, whether it is installed or not."""

import tomllib
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

from stepcraft.evals.benchmark import GROUP, Benchmark

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
ENTRY_POINTS: Mapping[str, Mapping[str, str]] = _PROJECT["project"]["entry-points"]
BENCHMARKS: dict[str, Benchmark] = {
    name: EntryPoint(name, value, GROUP).load() for name, value in ENTRY_POINTS[GROUP].items()
}
GRAPHS = sorted(ENTRY_POINTS["stepcraft.graphs"])


def install(folder: Path) -> None:
    """Write the metadata of a distribution that registers it into a folder of the path."""
    info = folder / "stepcraft_papers-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stepcraft-papers\nVersion: 0\n")
    lines: list[str] = []
    for group, entries in ENTRY_POINTS.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
