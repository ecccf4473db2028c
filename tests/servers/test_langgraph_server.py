"""The harness, on a graph of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from langgraph_sdk import get_sync_client

from tests.servers.langgraph_server import ROOT, LangGraphServer

GRAPH = """
from typing import TypedDict
from langgraph.graph import StateGraph

class State(TypedDict):
    text: str

graph = (
    StateGraph(State)
    .add_node("shout", lambda state: {"text": state["text"].upper()})
    .set_entry_point("shout")
    .compile()
)
"""


def config(folder: Path, target: str) -> Path:
    (folder / "shouting.py").write_text(GRAPH, encoding="utf-8")
    file = folder / "langgraph.json"
    file.write_text(
        json.dumps({"dependencies": ["."], "graphs": {"shout": target}}), encoding="utf-8"
    )
    return file


def test_it_serves_a_graph_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    state = ROOT / ".langgraph_api"
    before = state.exists()
    with LangGraphServer(config(tmp_path, "shouting:graph")) as server:
        with get_sync_client(url=server.url) as client:
            assert client.runs.wait(None, "shout", input={"text": "loud"}) == {"text": "LOUD"}
        group = server.pid
    assert state.exists() == before
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


def test_a_server_that_cannot_start_shows_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with (
        pytest.raises(RuntimeError, match="shouting"),
        LangGraphServer(config(tmp_path, "shouting:nothing")),
    ):
        pass
