"""The reference: nothing public is missing on its pages, and everything there is described."""

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from stepcraft import build_extract
from stepcraft.cli import app
from stepcraft.contexts.base import Settings
from stepcraft.graphs.registry import GRAPHS, get_graph
from stepcraft.sources.web import open_web

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs/reference"
PAGES = ["python.md", "results.md", "settings.md"]
_VARIABLE = r'"(STEPCRAFT_[A-Z_]+|[A-Z]+_API_KEY|EDITOR|VISUAL)"'


def listed(page: str) -> list[str]:
    """Return the names of which mkdocstrings writes the docstrings into a page."""
    return re.findall(r"^::: (\S+)$", (REFERENCE / page).read_text("utf-8"), re.MULTILINE)


def public_names() -> set[str]:
    """Return the names of `__all__`, and those that pages, examples and configurations import."""
    packages = ("stepcraft", "stepcraft.building", "stepcraft.sources")
    names = {f"{package}.{name}" for package in packages for name in import_module(package).__all__}
    pages = [*ROOT.glob("README.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*.py")]
    inside = {"explanation", "nodes.md"}  # what they import is not public for it
    text = joined(page for page in pages if not {page.parent.name, page.name} & inside)
    for module, imported in re.findall(
        r"^from (stepcraft(?:\.\S+)?) import ([^()\n#]+)", text, re.MULTILINE
    ):
        names |= {f"{module}.{name.strip()}" for name in imported.split(",")}
    served = re.findall(r'"(stepcraft\.server\.\w+:\w+)"', joined(ROOT.glob("langgraph*.json")))
    names |= {name.replace(":", ".") for name in served}
    return {name for name in names if not name.startswith("stepcraft.graphs.")}


def joined(files: Iterable[Path]) -> str:
    return "\n".join(file.read_text("utf-8") for file in files)


def resolve(identifier: str) -> Any:
    module, _, name = identifier.rpartition(".")
    return getattr(import_module(module), name)


def located(identifier: str) -> tuple[str, str]:
    """Return the module that defines a name, without importing servers, and its name there."""
    if identifier.startswith("stepcraft.server."):
        module, _, name = identifier.rpartition(".")
        return module, name
    value = resolve(identifier)
    return getattr(value, "__module__", ""), getattr(value, "__qualname__", "")


def test_every_public_name_is_documented_once() -> None:
    places = [located(name) for page in PAGES for name in listed(page)]
    assert len(places) == len(set(places))
    assert {located(name) for name in public_names()} - set(places) == set()


@pytest.mark.parametrize("page", PAGES)
def test_documented_names_exist(page: str) -> None:
    for name in listed(page):
        if name.startswith("stepcraft.server."):
            module, attribute = located(name)
            source = (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
            assert re.search(rf"^{attribute}\b.* = ", source, re.MULTILINE)
        else:
            assert resolve(name).__doc__, name


def graphs() -> list[Any]:
    return [*map(get_graph, GRAPHS), build_extract()]


def test_every_setting_is_on_a_class_of_the_page_and_described() -> None:
    classes = {resolve(name) for name in listed("settings.md")}
    for graph in graphs():
        bases = [base for base in graph.context_schema.__mro__ if issubclass(base, Settings)]
        assert set(bases) <= classes
        for name, field in graph.context_schema.model_fields.items():
            assert field.description, f"{graph.name}: {name}"


def test_every_key_of_inputs_and_results_is_on_a_class_of_the_page_and_described() -> None:
    titles = {name.rpartition(".")[2] for name in listed("results.md")}
    for graph in graphs():
        for schema in (graph.get_input_jsonschema(), graph.get_output_jsonschema()):
            parts = {schema["title"]: schema, **schema.get("$defs", {})}
            for title, part in parts.items():
                if title in titles:
                    for key, field in part["properties"].items():
                        assert field.get("description"), f"{title}.{key}"
    assert {"AagOutput", "Evidence", "Usage", "Revision", "TracedSentence"} <= titles


def test_every_command_and_option_is_described() -> None:
    def walk(command: Any, name: str) -> None:
        assert command.help, name
        for parameter in command.params:
            assert parameter.help or parameter.name == "help", f"{name} {parameter.name}"
        for subcommand, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {subcommand}")

    walk(get_command(app), "stepcraft")


def test_the_example_names_sources_that_there_are() -> None:
    example = (ROOT / ".env.example").read_text("utf-8")
    named = re.findall(r"\bweb:\w+", example)
    assert named
    assert all(f"`{name}`" in str(open_web.__doc__) for name in named)
    [source] = re.findall("source of evidence of graphs.*?\n# STEPCRAFT_SOURCE", example, re.DOTALL)
    assert "weaviate" not in source


def test_every_variable_is_described() -> None:
    read = set(re.findall(_VARIABLE, joined((ROOT / "stepcraft").rglob("*.py"))))
    example = (ROOT / ".env.example").read_text("utf-8")
    page = (REFERENCE / "environment.md").read_text("utf-8")
    described = {
        *re.findall(r"^(?:# )?([A-Z]\w+)=", example, re.MULTILINE),
        *re.findall("`([A-Z_]+)`", page),
    }
    assert read <= described
    assert {name for name in described if name.startswith("STEPCRAFT_")} <= read
