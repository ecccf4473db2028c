"""What a client of the real LangGraph server reads when a run fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.servers.langgraph_server import ROOT, LangGraphServer

GRAPHS = ["wrong_key", "no_answer", "no_memory", "no_source"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncLangGraphClient]:
    config: Any = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    config["dependencies"] = [str(ROOT)]
    config["graphs"] = {name: f"tests.graphs.failing:{name}" for name in GRAPHS}
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
