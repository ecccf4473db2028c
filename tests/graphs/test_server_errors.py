"""What a client of the real LangGraph server reads when a run fails, and an agent with the tools of a memory on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.graphs.remembering import RYE
from tests.servers.langgraph_server import ROOT, LangGraphServer

GRAPHS = ["wrong_key", "no_answer", "no_memory", "no_source"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncLangGraphClient]:
    config: Any = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    config["dependencies"] = [str(ROOT)]
    config["graphs"] = {name: f"tests.graphs.failing:{name}" for name in GRAPHS}
    config["graphs"]["remembering"] = "tests.graphs.remembering:agent"
    file: Path = tmp_path_factory.mktemp("failing") / "langgraph.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    with LangGraphServer(file) as server, get_sync_client(url=server.url) as opened:
        yield opened


@pytest.mark.xdist_group("failing")
@pytest.mark.parametrize(
    ("graph", "error", "sentence"),
    [
        ("wrong_key", "ModelFailure", "refuses every call: Refusing: bad key. Check its name and its key"),
        ("no_answer", "NoAnswer", "no answer was written: answer was skipped: the model's reply"),
        ("no_memory", "MemoryFailure", "127.0.0.1:1"),
        ("no_source", "SourceFailure", "OSError: the shelf fell down"),
    ],
)
def test_the_client_reads_the_sentence(
    client: SyncLangGraphClient, graph: str, error: str, sentence: str
) -> None:
    result: Any = client.runs.wait(None, graph, input={"question": "Why?"}, raise_error=False)
    assert result["__error__"]["error"] == error
    assert sentence in result["__error__"]["message"]


@pytest.mark.xdist_group("failing")
def test_an_agent_saves_to_the_servers_store_what_was_accepted(client: SyncLangGraphClient) -> None:
    """It shares this server: no other one serves graphs that are not ours."""
    thread = client.threads.create()["thread_id"]
    given: Any = {"messages": [{"role": "user", "content": "Bake."}]}
    asked: Any = client.runs.wait(thread, "remembering", input=given)
    request = asked["__interrupt__"][0]["value"]
    assert (request["type"], request["steps"]) == ("save_procedure", RYE["steps"])
    response: Any = {"resume": {"type": "accept", "by": "Ana"}}
    result: Any = client.runs.wait(thread, "remembering", command=response)
    assert result["messages"][-1]["content"] == "Done."
    [kept] = client.store.search_items(["remembering"])["items"]
    approval = kept["value"]["metadata"]["approved"]
    assert (approval["by"], approval["thread"], len(approval["run"])) == ("Ana", thread, 36)
    [found] = result["messages"][-2]["artifact"]["found"]
    assert found["output"] == RYE["goal"]
