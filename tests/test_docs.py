"""The pages in docs/ and beside it: their links lead somewhere, and what they name exists."""

import ast
import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import stepcraft
from stepcraft.cli import app
from stepcraft.graphs.registry import GRAPHS, context_of, get_graph
from website.drawings import with_drawings

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples/README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_files" not in page.parts),
]


each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}"
)


def read(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


def anchors(page: Path) -> set[str]:
    """Return what the headings of a page can be linked by."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if not target.startswith("https://"):
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            assert linked.exists(), target
            if linked.name != "commands.md":  # typer writes its headings when the site is built
                assert not anchor or anchor in anchors(linked), target


@each_page
def test_drawings_are_those_of_the_code(page: Path) -> None:
    text = page.read_text("utf-8")
    assert with_drawings(text) == text, "python -m website.drawings"


@pytest.mark.parametrize("graph", ["aag", "rat", "rpg"])
def test_a_page_draws_its_graph_and_describes_every_node(graph: str) -> None:
    text = read(f"docs/{graph}.md")
    assert f"<!-- drawing: {graph} -->" in text
    described = re.findall(r"^\| `(\w+)` \| [A-Z]", text, re.MULTILINE)
    assert {"__start__", "__end__", *described} == get_graph(graph).get_graph().nodes.keys()


def test_choosing_names_every_graph() -> None:
    names = re.findall(r"^\| `(\w+)`", read("docs/choosing.md"), re.MULTILINE)
    assert list(dict.fromkeys(names)) == list(GRAPHS)


@pytest.mark.parametrize("graph", ["aag", "rat", "rpg", "chat"])
def test_the_settings_and_defaults_of_a_page_are_those_of_its_graph(graph: str) -> None:
    table = read(f"docs/{graph}.md").partition("## Settings")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", table, re.MULTILINE)
    names = set(re.findall(r"\w+", " ".join(rows)))
    fields = context_of(graph).model_fields
    shared = context_of("direct").model_fields
    own = {name for name in fields if name not in shared and not name.endswith("_instructions")}
    assert names == own
    for name, default in re.findall(r"^\| `(\w+)` \| `(\w+)`", table, re.MULTILINE):
        assert str(fields[name].default).lower() == default, name


@each_page
def test_commands_take_the_options_that_are_shown(page: Path) -> None:
    text = page.read_text("utf-8").replace("\\\n", " ")
    for command, rest in re.findall(r"stepcraft (aag|rat|rpg|run|draw|mcp) ([^\n`]*)", text):
        shown = CliRunner().invoke(app, [command, "--help"]).output
        for option in re.findall(r" (--[a-z-]+)", rest.partition("#")[0]):
            assert option in shown, f"stepcraft {command} {rest}"


def test_servers_serve_the_graphs_of_the_registry() -> None:
    for file in ("langgraph.json", "langgraph.auth.json"):
        served = json.loads(read(file))["graphs"]
        assert served.keys() == {"aag", "rat", "rpg", "chat", "direct", "rag", "react"}
        for name, entry in served.items():
            module, _, builder = GRAPHS[name].builder.partition(":")
            attribute = builder.removeprefix("build_") if module.endswith("baselines") else "graph"
            assert entry == {
                "path": f"{module}:{attribute}",
                "description": f"{GRAPHS[name].sentence}.",
            }


def test_the_citation_names_the_version_of_the_package_and_the_papers() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == stepcraft.__version__
    readme = read("README.md")
    for paper in citation["references"]:
        [identifier] = paper["identifiers"]
        assert f"https://arxiv.org/abs/{identifier['value'].partition(':')[2]}" in readme


def test_the_first_screen_shows_what_the_command_below_it_prints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("wordllama", reason="without it the passages have other scores")
    monkeypatch.chdir(ROOT)
    readme = read("README.md")
    [shown] = re.findall(r"^```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    [command] = re.findall(r"^.*bin/stepcraft (.*)$", readme, re.MULTILINE)
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.stdout == shown


def texts() -> list[str]:
    """Return the texts in the code, with an ellipsis for what is put in at run time."""
    return [
        "".join(
            str(part.value) if isinstance(part, ast.Constant) else "\N{HORIZONTAL ELLIPSIS}"
            for part in (node.values if isinstance(node, ast.JoinedStr) else [node])
        )
        for file in (ROOT / "stepcraft").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.JoinedStr | ast.Constant)
    ]


def test_troubleshooting_explains_messages_of_the_code() -> None:
    page = read("docs/how-to/troubleshooting.md")
    messages = re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE)
    assert len(messages) > 20
    of_code = texts()
    for message in messages:
        parts = [re.escape(part.strip()) for part in message.split("\N{HORIZONTAL ELLIPSIS}")]
        assert any(re.search(".*".join(parts), text, re.DOTALL) for text in of_code), message


def test_the_page_on_embedding_names_the_arguments_of_the_tools() -> None:
    page = Path("docs/embedding.md").read_text()
    for tool in stepcraft.memory_tools(":memory:"):
        (row,) = re.findall(rf"^\| `{tool.name}` \| (.+?) \|", page, re.MULTILINE)
        assert re.findall(r"`(\w+)`", row) == list(tool.args)
