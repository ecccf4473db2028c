"""What Studio, servers and the documentation show of the graphs: the same names everywhere, and what each is for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepcraft import AagContext, build_aag, get_graph
from stepcraft.graphs.drawing import drawing
from stepcraft.graphs.registry import CHAT, GRAPHS, context_of
from stepcraft.progress import ProgressData
from tests.kitchen import GOAL, small_memory
from tests.scripted import ScriptedModel

ROOT = Path(__file__).parents[2]
METHODS = ["aag", "rat", "rpg"]
SERVED = [*GRAPHS, *CHAT]
_ARROW = re.compile(r"\s+(?:(-->|--\s\"[^\"]*\"\s-->)|(?:-\.->|-\.\s\"[^\"]*\"\s\.->))\s+")


def nodes_of(name: str) -> dict[str, str]:
    """What each node of a graph does, those of its subgraphs included, but not those of LangChain's agent."""
    graph = get_graph(name)
    drawn = {**graph.get_graph().nodes, **graph.get_graph(xray=True).nodes}
    ours = {id_: node for id_, node in drawn.items() if "__" not in id_ and "agent:" not in id_}
    return {id_: (node.metadata or {})["description"] for id_, node in ours.items()}


def own_names(name: str) -> set[str]:
    return {id_.rpartition(":")[2] for id_ in nodes_of(name)}


def pictures(page: str) -> list[str]:
    return re.findall(r"```mermaid\n(.*?)\n```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def arrows(picture: str) -> Iterator[tuple[str, bool, str]]:
    """Every arrow of a picture: from where, whether it is always taken, and where to."""
    for line in picture.splitlines():
        pieces = _ARROW.split(line.strip())
        for source, solid, target in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
            for one in source.split("&"):
                for other in target.split("&"):
                    yield bare(one), bool(solid), bare(other)


def bare(mention: str) -> str:
    return re.sub(r"[\[(].*", "", mention.strip())


@pytest.mark.parametrize("name", SERVED)
def test_each_setting_says_what_it_is_and_where_it_belongs(name: str) -> None:
    shown = get_graph(name).get_context_jsonschema()
    assert shown is not None
    for field, schema in shown["properties"].items():
        assert schema["description"].endswith((".", "\u2026")), field
        assert "default" in schema, field
        assert schema["langgraph_nodes"], field
        assert set(schema["langgraph_nodes"]) <= own_names(name), field
        assert (schema.get("langgraph_type") == "prompt") == field.endswith("_instructions"), field
        for one in schema.get("anyOf", [schema]):
            bounds = {
                "integer": {"minimum"},
                "number": {"minimum", "exclusiveMinimum"},
                "string": {"maxLength", "enum", "const"},
                "array": {"maxItems"},
            }.get(one.get("type"), set(one))
            assert bounds & set(one), (field, one)


@pytest.mark.parametrize("name", SERVED)
def test_the_settings_of_the_models_belong_to_the_nodes_that_ask_one(name: str) -> None:
    graph: Any = get_graph(name)
    asking = graph.builder.nodes["begin"].runnable.model_nodes
    shown = graph.get_context_jsonschema()["properties"]
    assert shown["node_models"]["description"].startswith(
        f"Another model for some of the nodes {', '.join(asking)}"
    )
    assert sorted(shown["model"]["langgraph_nodes"]) == sorted(asking)
    assert {f"{node}_instructions" for node in asking} <= set(shown)


def test_names_that_a_deployment_registers_keep_what_else_is_shown() -> None:
    shown = build_aag(allow="cook=memory:/srv/cook.db").get_context_jsonschema()["properties"]
    assert shown["memory"]["examples"] == ["cook"]
    assert shown["memory"]["langgraph_nodes"] == ["retrieve", "look_up", "check_names", "remember"]
    assert shown["model"]["langgraph_nodes"] == list(AagContext.model_nodes)


@pytest.mark.parametrize("name", SERVED)
def test_each_node_says_what_it_does(name: str) -> None:
    assert {line[-1] for line in nodes_of(name).values()} == {"."}
    served = get_graph(name).get_graph().to_json()["nodes"]
    told = {
        node["id"]: node.get("metadata", {}).get("description") for node in served if "__" not in node["id"]
    }
    assert told == {id_: line for id_, line in nodes_of(name).items() if ":" not in id_}


@pytest.mark.parametrize("name", METHODS)
def test_the_page_of_a_method_shows_its_graph(name: str) -> None:
    assert pictures(f"docs/{name}.md") == [drawing(get_graph(name))]
    page = (ROOT / f"docs/{name}.md").read_text("utf-8").partition("| node |")[2].partition("\n\n")[0]
    rows = set(re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE))
    assert rows == {(id_.rpartition(":")[2], line) for id_, line in nodes_of(name).items()}


def test_the_pictures_of_the_readme_are_of_the_graphs() -> None:
    """They leave out arrows that few runs take, and no node."""
    for name, picture in zip(METHODS, pictures("README.md"), strict=True):
        shown, drawn = set(arrows(picture)), set(arrows(drawing(get_graph(name))))
        assert len(shown) > 6
        assert shown <= drawn
        assert {end for arrow in shown for end in (arrow[0], arrow[2])} == {
            end for arrow in drawn for end in (arrow[0], arrow[2])
        }


def test_a_drawing_has_every_arrow_once() -> None:
    graph = get_graph("rat")
    assert len(list(arrows(drawing(graph)))) == len(set(arrows(drawing(graph)))) == 13
    assert list(arrows(drawing(graph, xray=False))) == [
        arrow for arrow in arrows(drawing(graph)) if not arrow[0].startswith("step_")
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_usage_and_progress_name_nodes_of_the_graph(name: str) -> None:
    result: Any = {}
    named: set[str] = set()
    given = {"question": "How does an agent keep what it learned?"}
    modes: Any = ["custom", "values"]
    for namespace, mode, part in get_graph(name).stream(given, stream_mode=modes, subgraphs=True):
        if mode == "custom":
            named |= {part.get("node", "begin")}
        elif not namespace:
            result = part
    assert named <= own_names(name)
    assert set(result["usage"]["nodes"]) <= own_names(name)


def test_warnings_name_nodes_of_the_graph() -> None:
    model = ScriptedModel(lambda node, _prompt: "1. Bake." if node == "draft" else ValueError("no"))
    graph = build_aag(model=model, memory=small_memory())
    result = graph.invoke(GOAL, context=AagContext(paper=True, retry_wait_s=0))
    named = {warning.partition(" was skipped")[0] for warning in result["warnings"]}
    assert named == {"to_query", "answer", "revise", "critic"}
    assert named <= own_names("aag")


def test_the_table_of_progress_names_nodes_and_data_that_there_are() -> None:
    page = (
        (ROOT / "docs/serving.md")
        .read_text("utf-8")
        .partition("| `graph` | `node` |")[2]
        .partition("\n\n")[0]
    )
    rows = [line.strip("| ").split(" | ") for line in page.splitlines()[2:]]
    assert len(rows) > 15
    for graph, nodes, data in rows:
        known = {own for name in SERVED for own in own_names(name) if f"`{name}`" == graph or graph == "all"}
        assert set(re.findall(r"`(\w+)`", nodes)) <= known
        assert set(re.findall(r"`(\w+)`", data)) <= set(ProgressData.__annotations__)


def test_node_names_in_the_documentation_are_those_of_the_graphs() -> None:
    every = {own for name in SERVED for own in own_names(name)}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    named = re.findall(r"node_models=\S*?\"(\w+)\"", text)
    assert {"critic"} <= set(named) <= every
    for name in SERVED:
        for field in context_of(name).__dataclass_fields__:
            node = field.removesuffix("_instructions")
            # The instructions for the one text of a long answer are the second of `combine`.
            assert node == field or node in own_names(name) or field == "finish_instructions"
