"""The generated reference: nothing public is missing on it."""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from stepcraft.cli import app
from website import reference
from website.reference import api, environment, results, settings
from website.reference.schemas import graphs, settings_type

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.xdist_group("reference")  # so that the pages are made in one process


@cache
def pages() -> dict[str, str]:
    return reference.pages()


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^## (\w+)$", pages()[page], re.MULTILINE)
    return {
        *re.findall(r"\{ #(\S+) \}", pages()[page]),
        *re.findall(r'id="(\S+?)"', pages()[page]),
        *map(str.lower, headings),
    }


def test_the_index_names_every_page() -> None:
    assert ["index.md", *re.findall(r"\]\((\w+\.md)\)", pages()["index.md"])] == list(pages())
    for name in re.findall(r"\]\(\.\./([^)\s]+)\)", "".join(pages().values())):
        assert (ROOT / "docs" / name.partition("#")[0]).exists(), name


def test_links_of_the_pages_lead_to_anchors() -> None:
    for page, text in pages().items():
        for target, anchor in re.findall(r"\]\((\w*(?:\.md)?)#([^)\s]+)\)", text):
            assert anchor in anchors(target or page), f"{page}: {anchor}"


def public_names() -> set[str]:
    """Return the names of `__all__`, and those that pages, examples and configurations import."""
    packages = ("stepcraft", "stepcraft.building", "stepcraft.sources")
    names = {f"{package}.{name}" for package in packages for name in import_module(package).__all__}
    inside = {"explanation", "nodes.md"}  # what they import is not public for it
    for page in (
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").glob("*.py"),
    ):
        if {page.parent.name, page.name} & inside:
            continue
        text = page.read_text("utf-8")
        for module, imported in re.findall(
            r"^from (stepcraft\S*) import ([^()\n]+)$", text, re.MULTILINE
        ):
            names |= {f"{module}.{name.strip()}" for name in imported.partition("#")[0].split(",")}
    for file in ROOT.glob("langgraph*.json"):
        for module, name in re.findall(
            r'"(stepcraft\.server\.\w+):(\w+)"', file.read_text("utf-8")
        ):
            names.add(f"{module}.{name}")
    return {name for name in names if not name.startswith("stepcraft.graphs.")}


def located(identifier: str) -> tuple[str, str]:
    """Return the module that defines a name, without importing servers, and its name there."""
    if identifier.startswith("stepcraft.server."):
        module, _, name = identifier.rpartition(".")
        return module, name
    value = api.resolve(identifier)
    return getattr(value, "__module__", ""), getattr(value, "__qualname__", "")


LISTED = [name for _, names in api.GROUPS.values() for name in names]


def test_every_public_name_is_documented_once() -> None:
    assert re.findall(r"^::: (\S+)$", pages()["python.md"], re.MULTILINE) == LISTED
    assert len(LISTED) == len(set(map(located, LISTED)))
    assert set(map(located, public_names())) - set(map(located, LISTED)) == set()


def test_documented_names_exist() -> None:
    for name in LISTED:
        module, attribute = located(name)
        if name.startswith("stepcraft.server."):
            source = (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
            assert re.search(rf"^{attribute}\b.* = ", source, re.MULTILINE)
        else:
            assert api.resolve(name).__doc__, name


@pytest.mark.parametrize("name", graphs())
def test_every_setting_has_an_anchor_and_a_description(name: str) -> None:
    owner = settings_type(graphs()[name])
    section = pages()["settings.md"].partition(f"{{ #{owner.__name__} }}")[2].partition("\n## ")[0]
    for field in owner.model_fields:
        assert f"{owner.__name__}.{field}" in anchors("settings.md")
        if field not in settings.SHARED:
            pattern = rf"^### `{field}`.*\n\n\w.+\n\n- Type: \S"
            assert re.search(pattern, section, re.MULTILINE), field


def test_a_shared_setting_with_another_default_stands_with_its_graph() -> None:
    text = pages()["settings.md"].partition("{ #RpgPaperContext.temperature }")[2]
    assert "- Default: `0.0`" in text.partition("###")[0]


def test_default_prompts_are_whole() -> None:
    text = re.sub(r"^    ", "", pages()["settings.md"], flags=re.MULTILINE)
    for graph in graphs().values():
        for name, field in settings_type(graph).model_fields.items():
            if name.endswith("_instructions"):
                assert field.default.strip() in text


def test_every_command_and_option_is_listed() -> None:
    text = pages()["commands.md"]

    def walk(command: object, name: str) -> None:
        section = text.partition(f" {name} {{ #")[2].partition("\n## ")[0].partition("\n### ")[0]
        assert section, name
        for each in command.params:  # type: ignore[attr-defined] # click comes without types
            is_argument = each.param_type_name == "argument"
            for option in [each.metavar or each.name.upper()] if is_argument else each.opts:
                assert option == "--help" or f"`{option}" in section, f"{name} {option}"
            assert each.help or each.name == "help", f"{name} {each.name}"
        for subcommand, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {subcommand}")

    walk(get_command(app), "stepcraft")


def test_every_key_is_listed_with_a_description() -> None:
    text = pages()["results.md"]
    tables = {f"{name}-input": results.inputs(graph) for name, graph in graphs().items()}
    tables |= {name: results.outputs(graph) for name, graph in graphs().items()}
    for owner, schema in {**tables, **results.parts()}.items():
        for key, field in schema["properties"].items():
            assert f'<span id="{owner}.{key}"></span>`{key}`' in text
            assert field.get("description"), f"{owner}.{key}"
    assert {"Evidence", "Usage", "Revision", "TracedSentence"} <= set(results.parts())


def test_every_variable_is_described() -> None:
    described = {variable.name for variable in environment.variables()}
    assert environment.read_by_the_code() <= described
    ours = {name for name in described if name.startswith("STEPCRAFT_")}
    assert ours <= environment.read_by_the_code()
    assert all(f"{{ #{name} }}" in pages()["environment.md"] for name in described)
