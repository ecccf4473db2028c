"""Runs as LangSmith receives them: trees, labels, usage, hiding, and feedback on them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_sdk import get_client
from langsmith import Client, uuid7

from stepcraft import AagContext, BadInput, build_aag, get_graph
from stepcraft.graphs.baselines import ReactContext, build_direct, build_react
from stepcraft.graphs.registry import GRAPHS
from stepcraft.llm.resources import VERSION
from stepcraft.secrets import redacted
from tests.graphs.parents import parent_of
from tests.graphs.traces import GIVEN, TREES, labels, tracer
from tests.kitchen import GOAL, PAPER, cook, small_memory
from tests.scripted import ScriptedModel, ToolModel, searching
from tests.servers.langgraph_server import LangGraphServer
from tests.servers.langsmith_server import LangSmithServer
from tests.shelf import QUESTION, Shelf

SEARCHED = {
    "aag": {"memory": "the bundled procedures"},
    "rat": {"source": "memory"},
    "rpg": {"source": "memory"},
    "rag": {"memory": "the bundled procedures"},
    "few_shot": {"memory": "the bundled procedures"},
    "react": {"memory": "the bundled procedures"},
}
PASSWORD = "hunter22"


@pytest.fixture
def langsmith() -> Iterator[LangSmithServer]:
    with LangSmithServer() as server:
        yield server


CONTEXT = {"max_calls": 30, "retry_wait_s": 0.5}
"""One setting that differs from its default, and one that does not."""


def expected(name: str) -> dict[str, Any]:
    return {"method": name, "version": VERSION, "max_calls": 30, **SEARCHED.get(name, {})}


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_the_tree_and_the_labels_of_each_graph(langsmith: LangSmithServer, way: str) -> None:
    with tracer(langsmith) as traced:
        for name in GRAPHS:
            graph, config = get_graph(name), RunnableConfig(callbacks=[traced])
            if way == "invoke":
                graph.invoke(GIVEN, config, context=CONTEXT)
            else:
                asyncio.run(graph.ainvoke(GIVEN, config, context=CONTEXT))
    assert [langsmith.tree(root) for root in langsmith.roots] == [TREES[name] for name in GRAPHS]
    assert [labels(root) for root in langsmith.roots] == [expected(name) for name in GRAPHS]
    assert all(run["end_time"] and not run.get("error") for run in langsmith.list("runs"))


def test_the_tree_and_the_labels_of_each_graph_in_a_parent(langsmith: LangSmithServer) -> None:
    with tracer(langsmith) as traced:
        for name in GRAPHS:
            parent_of(get_graph(name)).invoke(GIVEN, {"callbacks": [traced]}, context=CONTEXT)
    for root, name in zip(langsmith.roots, GRAPHS, strict=True):
        [node] = langsmith.children(root)
        [graph] = langsmith.children(node)
        assert (root["name"], node["name"]) == ("LangGraph", "write")
        assert langsmith.tree(graph) == TREES[name]
        assert (labels(root), labels(node), labels(graph)) == ({}, {}, expected(name))


async def test_the_tree_and_the_labels_of_each_graph_on_the_server(langsmith: LangSmithServer) -> None:
    settings = {"TRACING": "true", "ENDPOINT": langsmith.url, "API_KEY": "lsv2_pt_opensesame"}
    with LangGraphServer(settings={f"LANGSMITH_{name}": value for name, value in settings.items()}) as server:
        client = get_client(url=server.url)
        asked = {"question": f"{GIVEN['question']} from https://ana:opensesame@dishes.example"}
        runs = [client.runs.create(None, name, input=asked, context=CONTEXT) for name in GRAPHS]
        ids = [run["run_id"] for run in await asyncio.gather(*runs)]
        await asyncio.to_thread(
            langsmith.wait, lambda: sum(bool(root.get("end_time")) for root in langsmith.roots) == len(GRAPHS)
        )
        await client.aclose()
    for id_, name in zip(ids, GRAPHS, strict=True):
        root = langsmith.kept["runs"][id_]  # a run of the server has the id of its trace
        assert (langsmith.tree(root), labels(root)) == (TREES[name], expected(name))
    assert b":opensesame@" not in langsmith.received


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_the_searches_and_turns_of_an_agent(langsmith: LangSmithServer, way: str) -> None:
    model = ToolModel([searching("bridge", "builder"), "An answer."])
    graph = build_react(model=model, retriever=Shelf())
    with tracer(langsmith) as traced:
        config: RunnableConfig = {"callbacks": [traced]}
        if way == "invoke":
            graph.invoke(QUESTION, config, context=ReactContext(k=2))
        else:
            asyncio.run(graph.ainvoke(QUESTION, config, context=ReactContext(k=2)))
    [root] = langsmith.roots
    assert langsmith.tree(root).replace(".awrap", ".wrap").splitlines() == [
        "react",
        "  begin",
        "  agent",
        "    agent",
        "      model",
        "        BudgetedModelMiddleware.wrap_model_call",
        "          ToolModel (llm)",
        "      tools ×2",
        "        search (tool)",
        "          Shelf (retriever)",
        "      model",
        "        BudgetedModelMiddleware.wrap_model_call",
        "          ToolModel (llm)",
        "  conclude",
    ]
    wanted = {"method": "react", "version": VERSION, "source": "Shelf", "k": 2}
    models_and_searches = [run for run in langsmith.list("runs") if run["run_type"] in {"llm", "retriever"}]
    assert len(models_and_searches) == 4
    assert all(labels(run) == wanted for run in [root, *models_and_searches])


def test_models_have_usage_and_retrievers_what_they_found(langsmith: LangSmithServer) -> None:
    with small_memory() as memory, tracer(langsmith) as traced:
        graph = build_aag(model=ScriptedModel(cook()), memory=memory)
        result = graph.invoke(GOAL, {"callbacks": [traced]}, context=PAPER)
    runs = langsmith.list("runs")
    used = [
        run["outputs"]["generations"][0][0]["message"]["kwargs"]["usage_metadata"]
        for run in runs
        if run["run_type"] == "llm"
    ]
    for counted in ("input_tokens", "output_tokens"):
        assert sum(usage[counted] for usage in used) == result["usage"][counted] > 0
    searches = [run for run in runs if run["run_type"] == "retriever"]
    found = {document["id"] for run in searches for document in run["outputs"]["documents"]}
    assert found == {passage["id"] for passage in result["evidence"]}


def test_a_resumed_run_is_labelled_too(langsmith: LangSmithServer) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    with small_memory() as memory, tracer(langsmith) as traced:
        graph = build_aag(model=ScriptedModel(cook()), memory=memory, checkpointer=InMemorySaver())
        traced_config: RunnableConfig = {**config, "callbacks": [traced]}
        context = AagContext(paper=True, k=2)
        graph.invoke(GOAL, traced_config, context=context, interrupt_before=["critic"])
        graph.invoke(None, traced_config)
    wanted = {"method": "aag", "version": VERSION, "k": 2, "memory": "kitchen"}
    assert [labels(root) for root in langsmith.roots] == [{**wanted, **labels(langsmith.roots[0])}] * 2
    assert labels(langsmith.roots[0]).items() >= wanted.items()
    assert [run["name"] for run in langsmith.children(langsmith.roots[1])] == ["critic"]


def test_a_run_that_is_refused_is_labelled_too(langsmith: LangSmithServer) -> None:
    with tracer(langsmith) as traced, pytest.raises(BadInput, match="the question is empty"):
        get_graph("rag").invoke({"question": " "}, {"callbacks": [traced]}, context={"k": 2})
    [root] = langsmith.roots
    assert "the question is empty" in root["error"]
    assert labels(root)["k"] == 2


@pytest.mark.parametrize("hidden", [True, False])
def test_hidden_inputs_and_outputs(
    langsmith: LangSmithServer, monkeypatch: pytest.MonkeyPatch, hidden: bool
) -> None:
    from langsmith.utils import get_env_var  # noqa: PLC0415 - its cache holds what other tests had set

    for name in ("INPUTS", "OUTPUTS"):
        monkeypatch.setenv(f"LANGSMITH_HIDE_{name}", str(hidden).lower())
    get_env_var.cache_clear()
    with small_memory() as memory, tracer(langsmith) as traced:
        graph = build_aag(model=ScriptedModel(cook(critiques=1)), memory=memory)
        for part in graph.stream(GOAL, {"callbacks": [traced]}, context=PAPER, stream_mode="messages"):
            assert part
    get_env_var.cache_clear()
    texts = ["bake a rye bread", "Knead flour", "How is a sourdough starter fed?", "Answer 1", "Edited 1"]
    assert [text.encode() in langsmith.received for text in texts] == [not hidden] * len(texts)
    assert len(langsmith.list("runs")) > 20
    assert labels(langsmith.roots[0])["memory"] == "kitchen"


def test_an_anonymizer_sees_all_that_is_sent(langsmith: LangSmithServer) -> None:
    """A server mirrors the context into `configurable`, whose texts LangGraph adds to the metadata as they are."""
    url = f"https://cook:{PASSWORD}@example.org/"
    with tracer(langsmith, anonymizer=redacted) as traced:
        config: RunnableConfig = {"callbacks": [traced], "configurable": {"memory": url}}
        build_direct(model=ScriptedModel([f"See {url}"])).invoke({"question": f"What is at {url}?"}, config)
        with pytest.raises(BadInput):
            get_graph("rag").invoke(GIVEN, config, context={"memory": url})
    assert b"https://***@example.org/" in langsmith.received
    assert PASSWORD.encode() not in langsmith.received


def test_feedback_on_a_run(langsmith: LangSmithServer) -> None:
    run_id = uuid7()
    with tracer(langsmith) as traced:
        get_graph("direct").invoke(GIVEN, {"callbacks": [traced], "run_id": run_id})
    [root], project = langsmith.roots, uuid7()
    assert root["id"] == root["trace_id"] == str(run_id)
    client = Client(langsmith.url, api_key="k")
    client.create_feedback(trace_id=run_id, session_id=project, key="thumbs", score=1)
    client.flush()
    client.cleanup()
    [given] = langsmith.list("feedback")
    assert (given["run_id"], given["session_id"]) == (str(run_id), str(project))
