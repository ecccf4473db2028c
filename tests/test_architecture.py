"""The parts of the package: imports point downwards, and `_modules` stay in their folder."""

import ast
from graphlib import TopologicalSorter

from website.drawings import FILES, imports, parts

LAYERS = [
    "cli",
    "server",
    "middleware",
    "building",
    "evals",
    "report",
    "graphs",
    "nodes",
    "llm",
    "retrieval",
    "sources",
    "memory",
    "models",
    "contexts",
    "index",
    "text",
    "records",
    "progress",
    "evidence",
    "schema",
    "retriever",
    "journal",
    "concurrency",
    "access",
    "registered",
    "files",
    "encoding",
    "errors",
    "tracing",
    "secrets",
]
"""From the highest to the lowest; a part imports itself and what stands below it."""

IMPORTS = {module: set(imports(module)) - {module} for module in FILES}


def test_imports_are_absolute_and_of_modules_that_exist() -> None:
    unknown = {
        (module, other)
        for module, others in IMPORTS.items()
        for other in others
        if other not in FILES
    }
    relative = [
        module
        for module, path in FILES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert (unknown, relative) == (set(), [])


def test_there_is_no_cycle() -> None:
    TopologicalSorter(IMPORTS).prepare()


def test_parts_import_only_what_stands_below_them() -> None:
    imported = parts()
    assert sorted(imported) == sorted(LAYERS)
    upwards = [
        (part, other)
        for part, others in imported.items()
        for other in others
        if LAYERS.index(part) > LAYERS.index(other)
    ]
    assert upwards == []


def test_a_module_with_an_underscore_is_imported_in_its_folder_alone() -> None:
    strangers = [
        (module, other)
        for module, others in IMPORTS.items()
        for other in others
        if "._" in other and FILES[module].parent != FILES[other].parent
    ]
    assert strangers == []
