"""Runs as LangSmith receives them: a run for every node, with the graph's labels."""

from __future__ import annotations

import pytest
from langchain_core.tracers import LangChainTracer
from langsmith import Client

from stepcraft import __version__, anonymizer
from tests.graphs.test_every_graph import REPLIES, scripted
from tests.servers.langsmith_server import LangSmithServer
from tests.shelf import QUESTION


@pytest.mark.parametrize("name", REPLIES)
def test_every_node_is_a_run_with_the_graphs_labels(name: str) -> None:
    graph, model = scripted(name)
    question = {"question": f"{QUESTION['question']} password=hunter22"}
    with LangSmithServer() as server:
        client = Client(api_url=server.url, api_key="k", anonymizer=anonymizer())
        graph.invoke(question, {"callbacks": [LangChainTracer(client=client)]})
        client.flush()
        runs = server.list("runs")
        client.cleanup()
    (root,) = server.roots
    assert root["name"] == name
    children = {run["name"] for run in runs if run.get("parent_run_id") == root["id"]}
    assert children >= {"begin", "retrieve", "split", "edit", *model.nodes}
    labels = root["extra"]["metadata"]
    assert (labels["stepcraft_graph"], labels["stepcraft_version"]) == (name, __version__)
    assert [run["run_type"] for run in runs].count("llm") == len(REPLIES[name])
    assert "hunter22" not in str(runs)
