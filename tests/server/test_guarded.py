"""A server with `auth`, whose runs have event loops of their own: models named by strings, memories, MCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client
from typer.testing import CliRunner

from stepcraft import Procedure, open_memory
from stepcraft.cli import app
from tests.kitchen import PROCEDURES
from tests.server.doorkeeper import KEY, USER
from tests.server.test_graphs import CONTEXT, GRAPHS, given
from tests.server.test_mcp import ask
from tests.servers.langgraph_server import ROOT, LangGraphServer, models_from
from tests.servers.openai_server import OpenAIServer

GOAL = {"question": "bake a white bread"}

pytestmark = pytest.mark.xdist_group("weaviate_url")  # one of them needs it


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_server: OpenAIServer) -> Iterator[LangGraphServer]:
    config: Any = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    config["auth"] = {"path": f"{Path(__file__).parent / 'doorkeeper.py'}:auth"}
    file: Path = tmp_path_factory.mktemp("guarded") / "langgraph.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    settings = {
        **models_from(model_server),
        "BG_JOB_ISOLATED_LOOPS": "true",
        "STEPCRAFT_ALLOW": "weaviate://127.0.0.1:*/**",
    }
    with LangGraphServer(file, settings=settings) as started:
        yield started


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_API_KEY", KEY)


def test_runs_on_event_loops_of_their_own_lose_no_call(server: LangGraphServer) -> None:
    async def run_all() -> list[Any]:
        async with get_client(url=server.url, timeout=60) as client:

            def run(name: str, model: str) -> Any:
                return client.runs.wait(None, name, input=given(name), context={**CONTEXT, "model": model})

            alone = [run(name, "extractive") for name in GRAPHS]
            served = [run(name, "openai:quick") for name in GRAPHS * 4]
            return await asyncio.gather(*alone, *served)

    results = asyncio.run(run_all())
    for place, result in enumerate(results[len(GRAPHS) :]):
        alone = results[place % len(GRAPHS)]
        assert len(result["warnings"]) <= len(alone["warnings"]), result["warnings"]
        assert result["answer"] == alone["answer"] or GRAPHS[place % len(GRAPHS)] == "react"
    assert "different event loop" not in server.log
    assert "BlockingError" not in server.log


def test_mcp_asks_for_the_key(server: LangGraphServer) -> None:
    for headers in ({}, {"x-api-key": "guessed"}):
        assert ask(server.url, "tools/list", headers).status_code == 401
        assert ask(server.url, "tools/call", headers, name="direct", arguments=GOAL).status_code == 401
    answer = ask(server.url, "tools/call", {"x-api-key": KEY}, name="direct", arguments=GOAL)
    assert answer.json()["result"]["structuredContent"]["answer"]
    made = httpx.post(f"{server.url}/assistants", json={"graph_id": "rag", "context": {"kk": 1}}, timeout=30)
    assert made.status_code == 401


def test_a_memory_in_the_store_is_filled_and_searched(server: LangGraphServer, tmp_path: Path) -> None:
    url = f"store+{server.url}/{USER}/recipes"
    recipes = tmp_path / "recipes.jsonl"
    recipes.write_text("".join(json.dumps(procedure.to_dict()) + "\n" for procedure in PROCEDURES), "utf-8")
    run = CliRunner().invoke
    assert run(app, ["memory", "copy", str(recipes), url]).output == "4 added, 0 already there, 0 updated\n"
    assert run(app, ["memory", "copy", str(recipes), url]).output == "0 added, 4 already there, 0 updated\n"
    back = tmp_path / "back.db"
    assert run(app, ["memory", "copy", url, str(back)]).exit_code == 0
    assert run(app, ["memory", "check", str(back), str(recipes)]).exit_code == 0
    with get_sync_client(url=server.url) as client:
        items = client.store.search_items((USER, "recipes"), query="a loaf of wheat", limit=2)["items"]
        assert items[0]["score"] > items[1]["score"] > 0
        assert items[0]["value"]["output"] == "bake a white bread"
        result: Any = client.runs.wait(None, "aag", input=GOAL, context={"memory": "store:recipes", "k": 1})
    assert [passage["title"] for passage in result["evidence"]] == ["bake a white bread"]
    id_ = PROCEDURES[0].id
    assert run(app, ["memory", "remove", id_, "--memory", url]).output == "1 removed\n"


def test_the_store_of_a_server_that_refuses_or_is_gone(
    server: LangGraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGGRAPH_API_KEY", "guessed")
    for address, reason in ((server.url, "no such key"), ("http://127.0.0.1:1", "ConnectError")):
        found = CliRunner().invoke(app, ["memory", "count", "--memory", f"store+{address}/{USER}/recipes"])
        assert found.exit_code == 1
        assert reason in found.stderr
        assert "guessed" not in found.output
    found = CliRunner().invoke(app, ["memory", "count", "--memory", "store+http://server.example/recipes"])
    assert "LANGGRAPH_API_KEY would be sent to server.example over an open connection" in found.stderr


@pytest.mark.parametrize("named", ["store+http://127.0.0.1:1/a", "store+https://server.example/a"])
def test_a_run_may_not_name_the_store_of_a_server(server: LangGraphServer, named: str) -> None:
    with get_sync_client(url=server.url) as client:
        result: Any = client.runs.wait(None, "aag", input=GOAL, context={"memory": named}, raise_error=False)
    assert "a run may not name the memory" in result["__error__"]["message"]


def test_a_memory_in_weaviate(server: LangGraphServer, new_collection: Callable[..., str]) -> None:
    url = new_collection()
    with open_memory(url) as memory:
        memory.add([Procedure("flour, yeast", "bake a white bread", ("Knead.", "Bake."))])

    async def run_all() -> list[Any]:
        async with get_client(url=server.url) as client:
            runs = [client.runs.wait(None, "aag", input=GOAL, context={"memory": url}) for _ in range(6)]
            return await asyncio.gather(*runs)

    for result in asyncio.run(run_all()):
        assert [passage["title"] for passage in result["evidence"]] == ["bake a white bread"]
        assert not any("failed" in warning for warning in result["warnings"])
