"""Runs as LangSmith receives them: a run for every node, labels, usage, no secrets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Any

import pytest
from langchain_core.tracers import LangChainTracer
from langsmith import Client

from stepcraft import anonymizer
from stepcraft.llm.resources import VERSION
from tests.graphs.test_every_graph import REPLIES, scripted
from tests.servers.langsmith_server import LangSmithServer
from tests.shelf import QUESTION

NODES = {
    "rat": {"begin", "retrieve", "draft", "split", "revise", "edit", "finish"},
    "rpg": {"begin", "plan", "retrieve", "generate", "split", "revise", "edit", "trace"},
    "aag": {
        "begin",
        "to_query",
        "retrieve",
        "draft",
        "split",
        "critic",
        "edit",
        "check_names",
        "finish",
    },
}


def traced(name: str, question: str) -> list[Any]:
    """Return the runs that a server receives of a graph's."""
    with LangSmithServer() as server:
        client = Client(api_url=server.url, api_key="k", anonymizer=anonymizer())
        graph, _ = scripted(name)
        graph.invoke({"question": question}, {"callbacks": [LangChainTracer(client=client)]})
        client.flush()
        runs = list(server.kept["runs"].values())
        client.cleanup()
    return runs


@pytest.mark.parametrize("name", REPLIES)
def test_every_node_is_a_run_with_the_graphs_labels(name: str) -> None:
    runs = traced(name, QUESTION["question"])
    (root,) = [run for run in runs if not run.get("parent_run_id")]
    assert root["name"] == name
    children = {run["name"] for run in runs if run.get("parent_run_id") == root["id"]}
    assert children >= NODES[name]
    labels = root["extra"]["metadata"]
    assert (labels["stepcraft_graph"], labels["stepcraft_version"]) == (name, VERSION)
    models = [run for run in runs if run["run_type"] == "llm"]
    assert len(models) == len(REPLIES[name])


def test_a_key_in_a_question_is_not_sent() -> None:
    runs = traced("rat", "Who built Oster, with password=hunter22?")
    assert runs
    assert "hunter22" not in str(runs)


def test_a_program_ends_behind_an_endpoint_that_never_answers() -> None:
    program = (
        "from stepcraft import configure_tracing, get_graph; configure_tracing();"
        "print(get_graph('rag').invoke({'question': 'How does an agent remember?'})['answer'])"
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = {"TRACING": "true", "ENDPOINT": endpoint, "API_KEY": "k"}
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **{f"LANGSMITH_{name}": value for name, value in settings.items()}},
            stdout=subprocess.PIPE,
            timeout=45,  # without the call it is still there after 60 s
            check=True,
        )
    assert done.stdout
