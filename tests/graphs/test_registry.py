"""Every graph by its name: one loop runs them all."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from stepcraft import BadInput, get_graph
from stepcraft.contexts.chat import MethodName
from stepcraft.graphs.registry import CHAT, GRAPHS, context_of
from tests.test_public import python

NAMES = ["aag", "rat", "rpg", "direct", "cot", "rag", "few_shot", "react"]
QUESTION = "How does a LangGraph agent keep what it learned with a Store from one thread to the next?"


def test_the_names() -> None:
    assert list(GRAPHS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_one_loop_runs_them_all(name: str) -> None:
    graph = get_graph(name)
    given = {"question": QUESTION, "kind": "long", "resources": "a LangGraph agent"}
    result = graph.invoke(given, context=SimpleNamespace(retriever="memory", k=2, max_calls=30))
    assert result["answer"]
    assert {"answer", "evidence", "warnings", "usage"} <= set(result)
    assert "no language model wrote this" in result["warnings"][0]
    assert result["usage"]["calls"] == sum(used["calls"] for used in result["usage"]["nodes"].values()) > 0
    assert bool(result["evidence"]) == (name not in {"direct", "cot"})
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize("name", [*NAMES, "chat"])
def test_the_server_serves_it(name: str) -> None:
    config = json.loads((Path(__file__).parents[2] / "langgraph.json").read_text(encoding="utf-8"))
    listed = (GRAPHS | CHAT)[name]
    assert config["graphs"][name] == {
        "path": f"stepcraft.graphs.{listed.module}:graph",
        "description": f"{listed.sentence}.",
    }
    assert sorted(config["graphs"]) == sorted([*NAMES, "chat"])


def test_the_chat_may_be_answered_by_each() -> None:
    assert list(get_args(MethodName)) == NAMES


def undescribed(schema: Any) -> list[str]:
    """The fields of a JSON schema, and of those inside it, that nothing is said of."""
    own = [name for name, field in schema.get("properties", {}).items() if not field.get("description")]
    inner = [f"{kind}.{name}" for kind, one in schema.get("$defs", {}).items() for name in undescribed(one)]
    return own + inner


@pytest.mark.parametrize("name", NAMES)
def test_every_field_says_what_it_is(name: str) -> None:
    graph = get_graph(name)
    schemas = [graph.get_input_jsonschema(), graph.get_output_jsonschema(), graph.get_context_jsonschema()]
    for schema in schemas:
        assert schema is not None
        assert schema["description"]
        assert "Raises" not in schema["description"]
        assert undescribed(schema) == []
    assert context_of(name)().changed == {}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ratt", "there is no graph 'ratt'; did you mean 'rat'? there is aag, rat, rpg, direct"),
        ("fewshot", "there is no graph 'fewshot'; did you mean 'few_shot'?"),
        ("xyz", "there is no graph 'xyz'; there is aag, rat, rpg, direct, cot, rag, few_shot, react"),
    ],
)
def test_an_unknown_name(name: str, sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        get_graph(name)
    assert str(caught.value).startswith(sentence)


def test_listing_them_loads_none() -> None:
    code = "import sys; from stepcraft.graphs.registry import GRAPHS; print('langgraph' in sys.modules, len(GRAPHS))"
    assert python(code) == "False 8\n"
