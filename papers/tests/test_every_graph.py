"""What holds for each of the papers' graphs: its input and settings, and the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from papers.tests.registered import GRAPHS
from stepcraft import BadInput, get_graph
from stepcraft.contexts.base import Settings
from stepcraft.graphs.embed import as_tool
from stepcraft.graphs.registry import context_of, graph_info
from stepcraft.memory.files import write_jsonl
from tests.cli.shell import data, run
from tests.kitchen import PROCEDURES
from tests.shelf import QUESTION

DOCS = Path(__file__).parents[2] / "docs"
IDS = {procedure.id for procedure in PROCEDURES}

each_graph = pytest.mark.parametrize("name", GRAPHS)


@each_graph
@pytest.mark.parametrize(
    "given",
    [
        {"question": ""},
        {"question": " \n"},
        {"question": 7},
        {"messages": []},
        {"question": "x" * 50_001},
    ],
)
def test_a_question_that_cannot_be_used_is_refused(name: str, given: Any) -> None:
    with pytest.raises(BadInput, match="question"):
        get_graph(name).invoke(given)


@each_graph
@pytest.mark.parametrize(
    ("field", "value"),
    [("max_calls", 0), ("nobody_knows", 1), ("deadline_s", float("inf")), ("temperature", 3)],
)
def test_settings_that_cannot_be_used_are_refused(name: str, field: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=field):
        get_graph(name).invoke(QUESTION, context={field: value})


@each_graph
@pytest.mark.parametrize(
    "options",
    [
        {"model": 42},
        {"node_models": {"answer": 42}},
        {"sources": 42},
        {"sources": [42]},
        {"memory": 42},
        {"embeddings": 42},
        {"settings": 42},
    ],
)
def test_objects_of_another_kind_are_refused_when_a_graph_is_built(name: str, options: Any) -> None:
    with pytest.raises(BadInput, match="42"):
        get_graph(name, **options)


@each_graph
def test_it_runs_and_is_drawn_by_the_command_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(PROCEDURES, tmp_path / "kitchen.jsonl")
    memory = "" if name == "cot" else "--memory kitchen.jsonl"
    answer = data(f"run {name} 'bake a rye bread' {memory}")
    assert {"answer", "evidence", "warnings", "usage"} <= set(answer)
    assert {passage["id"] for passage in answer["evidence"]} <= IDS
    assert "begin" in run(f"draw {name} --xray").stdout
    assert graph_info(name).sentence in run("graphs").stdout


@each_graph
def test_a_tool_says_what_it_is_for(name: str) -> None:
    graph: Any = get_graph(name)
    assert as_tool(graph).description.startswith(graph_info(name).sentence)


def test_the_page_names_every_graph() -> None:
    table = (DOCS / "papers.md").read_text("utf-8").partition("## Graphs")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == GRAPHS


@each_graph
def test_every_setting_input_and_result_is_on_the_page_and_described(name: str) -> None:
    page = "".join(
        (DOCS / "reference" / file).read_text("utf-8")
        for file in ("papers.md", "settings.md", "results.md")
    )
    graph, context = get_graph(name), context_of(name)
    listed = {each.rpartition(".")[2] for each in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    bases = [base for base in context.__mro__ if issubclass(base, Settings)]
    assert {base.__name__ for base in bases} <= listed
    assert all(field.description for field in context.model_fields.values())
    for schema in (graph.get_input_jsonschema(), graph.get_output_jsonschema()):
        parts = {schema["title"]: schema, **schema.get("$defs", {})}
        for title in parts.keys() & listed:
            for key, field in parts[title]["properties"].items():
                assert field.get("description"), f"{title}.{key}"
