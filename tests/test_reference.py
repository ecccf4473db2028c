"""The generated reference: nothing public is missing on it."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

import stepcraft
from stepcraft.cli import app
from stepcraft.cli.doctor._configured import VARIABLES
from stepcraft.contexts.base import Context
from website import reference
from website.reference import api, commands, environment, messages, results, settings
from website.reference.schemas import context_class, graphs

ROOT = Path(__file__).parents[1]
CODE = sorted((ROOT / "stepcraft").rglob("*.py"))
TROUBLESHOOTING = ROOT / "docs/how-to/troubleshooting.md"

pytestmark = pytest.mark.xdist_group("reference")  # so that the pages are made in one process


@cache
def pages() -> dict[str, str]:
    return reference.pages()


def anchors(page: str) -> set[str]:
    return {*re.findall(r"\{ #(\S+) \}", pages()[page]), *re.findall(r'id="(\S+?)"', pages()[page])}


def test_the_index_names_every_page() -> None:
    listed = re.findall(r"\]\((\w+\.md)\)", pages()["index.md"])
    assert ["index.md", *listed] == list(pages())
    for name in re.findall(r"\]\(\.\./([^)\s]+)\)", "".join(pages().values())):
        assert (ROOT / "docs" / name.partition("#")[0]).exists(), name


def test_links_of_the_pages_lead_to_anchors() -> None:
    python = {name for _, names in api.GROUPS.values() for name in names} | {"errors"}
    for page, text in pages().items():
        for target, anchor in re.findall(r"\]\((\w*(?:\.md)?)#([^)\s]+)\)", text):
            name = target or page
            headings = {title.lower() for title in re.findall(r"^## (\w+)$", pages()[name], re.MULTILINE)}
            assert anchor in (python if name == "python.md" else anchors(name) | headings), (
                f"{page}: {anchor}"
            )


def public_names() -> set[str]:
    """The names of `__all__` of the public packages, and those that pages, examples and server configurations import.

    Explanations look inside the package, so what they import is not public for it.
    """
    packages = ("stepcraft", "stepcraft.building", "stepcraft.sources")
    named = {f"{package}.{name}" for package in packages for name in import_module(package).__all__}
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")):
        if page.parent.name == "explanation":
            continue
        text = page.read_text("utf-8")
        for module, names in re.findall(r"^(?:from) (stepcraft\S*) import ([^()\n]+)$", text, re.MULTILINE):
            named |= {
                f"{module}.{name.split(' as ')[0].strip()}" for name in names.partition("#")[0].split(",")
            }
    for file in ROOT.glob("langgraph*.json"):
        for module, name in re.findall(r'"(stepcraft\.server\.\w+):(\w+)"', file.read_text("utf-8")):
            named.add(f"{module}.{name}")
    return {name for name in named if not name.startswith("stepcraft.graphs.")}


def located(identifier: str) -> tuple[str, str]:
    """The module that defines a name, found without importing servers, and its name there."""
    if identifier.startswith("stepcraft.server."):
        return tuple(identifier.rsplit(".", 1))  # type: ignore[return-value]
    found = api.resolve(identifier)
    return getattr(found, "__module__", ""), getattr(found, "__qualname__", "")


def test_every_public_name_is_documented_once() -> None:
    listed = [name for _, names in api.GROUPS.values() for name in names]
    assert re.findall(r"^::: (\S+)$", pages()["python.md"], re.MULTILINE) == listed
    assert len(listed) == len(set(map(located, listed)))
    missing = set(map(located, public_names())) - set(map(located, listed))
    assert not missing
    assert len(stepcraft.__all__) > 40


def test_every_graph_has_its_builder_and_its_context() -> None:
    listed = {name.rpartition(".")[2] for _, names in api.GROUPS.values() for name in names}
    for name, graph in graphs().items():
        assert {f"build_{name}", context_class(graph).__name__} <= listed


def test_documented_names_are_there() -> None:
    for name in (name for _, names in api.GROUPS.values() for name in names):
        module, attribute = located(name)
        if name.startswith("stepcraft.server."):
            source = (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
            assert re.search(rf"^{attribute}\b.* = ", source, re.MULTILINE)
        else:
            assert api.resolve(name).__doc__, name


@pytest.mark.parametrize("name", graphs())
def test_every_setting_has_an_anchor_and_a_description(name: str) -> None:
    owner = context_class(graphs()[name])
    linked = re.findall(rf"settings\.md#{owner.__name__}\.(\w+)", pages()["python.md"])
    assert linked == list(owner.__dataclass_fields__.keys() - {"__pydantic_config__", "model_nodes"}) or set(
        linked
    )
    for field in linked:
        assert f"{owner.__name__}.{field}" in anchors("settings.md")
    assert set(linked) == set(graphs()[name].get_context_jsonschema()["properties"])  # type: ignore[index]
    section = pages()["settings.md"].partition(f"{{ #{owner.__name__} }}")[2].partition("\n## ")[0]
    for field in set(linked) - set(settings.shared()):
        assert re.search(rf"^### `{field}`.*\n\n\w.+\n\n- Type: \S", section, re.MULTILINE), field


def test_a_shared_setting_with_another_default_stands_with_its_graph() -> None:
    text = pages()["settings.md"]
    assert "- Default: `0.0`" in text.partition("{ #RpgContext.temperature }")[2].partition("###")[0]
    assert set(settings.shared()) == {
        one for one in Context.__dataclass_fields__ if f"{{ #Context.{one} }}" in text
    }


def test_default_prompts_are_whole() -> None:
    text = re.sub(r"^    ", "", pages()["settings.md"], flags=re.MULTILINE)
    for graph in graphs().values():
        schema = graph.get_context_jsonschema()["properties"]  # type: ignore[index]
        for field in schema.values():
            if field.get("langgraph_type") == "prompt":
                assert field["default"].strip() in text


def test_every_command_and_option_is_listed() -> None:
    text = pages()["commands.md"]

    def walk(command: object, name: str) -> None:
        section = text.partition(f" {name} {{ #")[2].partition("\n## ")[0].partition("\n### ")[0]
        assert section, name
        for one in command.params:  # type: ignore[attr-defined]
            shown = one.opts if one.param_type_name != "argument" else [one.metavar or one.name.upper()]
            for option in shown if one.name != "help" else ():
                assert f"`{option}" in section, f"{name} {option}"
            assert one.help or one.name == "help", f"{name} {one.name}"
        for subcommand, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {subcommand}")

    walk(get_command(app), "stepcraft")
    assert len(commands.commands()) > 25


def test_every_key_is_listed_with_a_description() -> None:
    text = pages()["results.md"]
    tables = {**{f"{name}-input": results.inputs(graph) for name, graph in graphs().items()}}
    tables |= {name: results.outputs(graph) for name, graph in graphs().items()}
    for owner, schema in {**tables, **results.parts()}.items():
        for key, one in schema["properties"].items():
            assert f'<span id="{owner}.{key}"></span>`{key}`' in text
            assert one.get("description"), f"{owner}.{key}"
    assert {"Evidence", "Usage", "Revision", "Segment", "Critique"} <= set(results.parts())


def test_every_variable_is_described() -> None:
    listed = {one.name: one for one in environment.variables()}
    texts = "\n".join(file.read_text("utf-8") for file in CODE).replace(
        'get_env_var("', 'get_env_var("LANGSMITH_'
    )
    named = set(
        re.findall(
            r"""["']([A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*(?:KEY|TOKEN|URL|HOST|ENDPOINT|TIMEOUT))["']""", texts
        )
    )
    named |= set(re.findall(r"""environ(?:\.get|\.setdefault)?[(\[]["'](\w+)["']""", texts))
    assert named | {*VARIABLES} <= {*listed}
    assert all(one.description and one.files for one in listed.values())
    for name in environment.described():
        assert name in listed, f"nothing reads {name} of .env.example"
        assert f"{{ #{name} }}" in pages()["environment.md"]


def test_a_variable_that_nothing_describes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "described", dict)
    with pytest.raises(ValueError, match="nothing says what EXA_API_KEY does"):
        environment.variables()


def raised() -> list[tuple[str, str]]:
    """The texts that stand in `raise` statements of the package, with where they stand."""
    found = []
    for file in CODE:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                message = node.exc.args[0]
                if isinstance(message, ast.Constant | ast.JoinedStr | ast.BinOp):
                    parts = [one.value for one in ast.walk(message) if isinstance(one, ast.Constant)]
                    found += [(part, f"{file.name}:{node.lineno}") for part in parts if isinstance(part, str)]
    return found


def test_every_message_is_listed() -> None:
    text = " ".join(one.text for one in messages.messages())
    page = pages()["messages.md"]
    assert all(one.text in page for one in messages.messages())
    checked = [(" ".join(part.split()), where) for part, where in raised() if len(part.split()) > 2]
    assert len(checked) > 400
    assert [(part, where) for part, where in checked if part not in text] == []


@pytest.mark.parametrize(
    ("said", "seen_in"),
    [
        ("there is no graph {name};{hint} there is {graphs}", "BadInput"),
        ("{name}={value} cannot be used: {why}", "BadInput"),  # from a function that makes the sentence
        ("it was cut off before any text", "UnreadableReply"),  # one of two texts
        ("it was empty", "UnreadableReply"),
        ("nothing was found on: {topic}", "warning"),  # in the update of a node
        (
            "{node}: the step took longer than step_deadline_s allows",
            "warning",
        ),  # from a function of another module
        (
            "the model takes no tools, so nothing was searched more than once: this is what rag gives",
            "warning",
        ),
        ("{where} is left out: {reason}", "warning"),  # in the log
        (
            "cannot be reached at {http} ({text}); is Weaviate running there?",
            "end",
        ),  # by a function, put behind a name
        ("is locked by another connection; try again when it is done", "end"),  # in a table
        (
            "the passages are empty; the answer is written without evidence",
            "warning",
        ),  # beside another result
        ("nobody can be authenticated at the moment; the log of the server says why", "HTTPException"),
        (
            "{reason}; the first {done} procedures were dealt with{doubt}: add again to do the rest",
            "AddStopped",
        ),
        ("{name} is set, and nothing reads it", "doctor"),
        (
            'STEPCRAFT_LIMITS_DB names Postgres, which needs a package: pip install "stepcraft[postgres]"',
            "BadInput",
        ),
    ],
)
def test_messages_are_found_however_they_are_made(said: str, seen_in: str) -> None:
    assert any(one.text == said and seen_in in one.kinds for one in messages.messages())


def test_troubleshooting_explains_messages_that_there_are() -> None:
    headings = re.findall(r"^### `+ ?(.+?) ?`+$", TROUBLESHOOTING.read_text("utf-8"), re.MULTILINE)
    assert len(headings) == len(set(headings)) >= 40
    texts = [one.text for one in messages.messages()]
    for heading in headings:
        parts = map(re.escape, re.split("\N{HORIZONTAL ELLIPSIS}", heading))
        begins = re.compile(".+?".join(parts))
        assert any(begins.match(text) for text in texts), heading
