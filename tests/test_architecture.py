"""The rooms of the package: imports point downward, `_modules` stay in their folder, the picture is what is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "stepcraft").rglob("*.py")
}
LAYERS = [
    "cli",
    "server",
    "building",
    "evals",
    "report",
    "graphs",
    "nodes",
    "llm",
    "retrieval",
    "sources",
    "memory",
    "rerank",
    "models",
    "contexts",
    "index",
    "text",
    "records",
    "progress",
    "segments",
    "evidence",
    "schema",
    "limits",
    "concurrency",
    "access",
    "policy",
    "files",
    "errors",
    "secrets",
]
"""From the highest to the lowest; a room imports itself and what stands below it."""


def imports(module: str) -> Iterator[str]:
    """The modules of the package that a module imports, also within functions and for type checkers alone."""
    for node in ast.walk(ast.parse(FILES[module].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stepcraft"):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in FILES else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("stepcraft"))


def room(module: str) -> str:
    """The first part of the name below the package."""
    return module.split(".")[1]


GRAPH = {module: set(imports(module)) - {module} for module in FILES}
"""The package itself, which only hands on public names, is imported by nobody inside."""
EDGES = {
    (room(module), room(other))
    for module, others in GRAPH.items()
    for other in others
    if module != "stepcraft" and room(module) != room(other)
}


def test_imports_are_absolute_and_of_modules_that_there_are() -> None:
    unknown = {(module, other) for module, others in GRAPH.items() for other in others if other not in FILES}
    relative = [
        module
        for module, path in FILES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert (unknown, relative) == (set(), [])


def test_there_is_no_cycle() -> None:
    TopologicalSorter(GRAPH).prepare()


def test_rooms_import_only_what_stands_below_them() -> None:
    assert {name for edge in EDGES for name in edge} <= set(LAYERS)
    assert [edge for edge in EDGES if LAYERS.index(edge[0]) > LAYERS.index(edge[1])] == []


def test_a_module_with_an_underscore_is_imported_in_its_folder_alone() -> None:
    strangers = [
        (module, other)
        for module, others in GRAPH.items()
        for other in others
        if "._" in other and FILES[module].parent != FILES[other].parent
    ]
    assert strangers == []


def test_the_picture_in_contributing_is_what_the_imports_say() -> None:
    """An arrow for each import between rooms that does not follow from two others."""
    reached: dict[str, set[str]] = {}
    for name in reversed(LAYERS):
        below = {target for source, target in EDGES if source == name}
        reached[name] = below.union(*(reached[target] for target in below))
    arrows = {
        (source, target)
        for source, target in EDGES
        if not any(target in reached[other] for other in reached[source] if (source, other) in EDGES)
    }
    picture = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("```mermaid")[2].partition("```")[0]
    drawn = {
        (source, target)
        for line in picture.splitlines()
        if "-->" in line
        for part, following in [line.split("-->")]
        for source in re.findall(r"\w+", part)
        for target in re.findall(r"\w+", following)
    }
    assert drawn == arrows
