"""The programs in examples/ run without a key, and show what they are there to show."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
TASK = "add long-term memory to a chat agent"


Show = Callable[..., str]


@pytest.fixture(autouse=True)
def path_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the folder of the programs first on the path, as Python does."""
    monkeypatch.syspath_prepend(str(EXAMPLES))


def example(name: str) -> Any:
    """Return the names that a program defines."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Show:
    """Runs a program and returns what it prints."""

    def show(name: str, *arguments: object) -> str:
        example(name)["main"](*arguments)
        return capsys.readouterr().out

    return show


def test_the_agent(show: Show) -> None:
    printed = show("agent", TASK)
    progress, _, answer = printed.partition("\n\nCreate")
    assert "a scripted one replies" in progress
    assert len(progress.splitlines()) > 5
    assert "\n\nSources:\n[1] " in answer
    assert "sentences supported" in answer
    assert printed.endswith("The agent: The answer above has its sources.\n")


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
def test_the_supervisor(show: Show) -> None:
    progress, _, conversation = show("supervisor", TASK).partition("human: ")
    assert progress.count("\naag: ") > 5
    assert "ai: 1. Create" in conversation
    assert conversation.endswith("The steps above do it.\n")


def test_the_deep_agent(show: Show) -> None:
    reviewed, _, answer = show("deep_agent", TASK).partition("\nThe agent: ")
    assert "\n1. Create" in reviewed
    assert answer == "The steps are written.\n"


def test_the_swarm(show: Show) -> None:
    printed = show("swarm", "How does an agent stream?", "How is a graph deployed?")
    assert printed.count("\nrat: ") == 2


def test_the_remembering_agent(show: Show) -> None:
    request, _, conversation = show("remembering_agent", "bake a rye bread").partition("human: ")
    assert "Save in store:kitchen: bake a rye bread" in request
    empty, _, saved = conversation.partition("The procedure is saved with the id ")
    assert "no procedure that fits" in empty
    assert f'<procedure id="{saved[:36]}">' in saved
    assert saved.endswith("ai: The procedure is in the memory now.\n")


def test_the_middleware(show: Show) -> None:
    printed = show("middleware", TASK)
    assert "The agent saw 3 procedures.\nnot found: Compile the graph" in printed
    assert printed.endswith("let its nodes search the store.\n")


def test_the_review_by_a_person(show: Show) -> None:
    proposed, _, reviewed = show("human_review", TASK).partition("Reviewed:\n")
    assert "\n1. Create" in proposed
    assert "Try it out" not in proposed
    assert reviewed.endswith(". Try it out with a colleague.\n")


def test_the_parent_graph(show: Show) -> None:
    first, _, second = show("parent_graph", [TASK, "stream the steps of an agent"]).partition(
        "## stream"
    )
    assert "save_user_info" in first
    assert "stream_mode" in second
    assert "\n8 model calls\n- " in second
    assert second.count("no language model was used") == 1


def test_the_client(langgraph_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(example("client")["main"](langgraph_server, "aag", "rat", question=TASK))
    for printed in capsys.readouterr().out.split("\n== ")[1:]:
        assert "failed" not in printed
        assert len([line for line in printed.splitlines() if line.startswith("   ")]) > 5
        assert printed.rstrip().splitlines()[-1]


def test_the_endpoint() -> None:
    app = example("fastapi_app")["app"]

    async def ask(question: str) -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://example.com") as client:
            return await client.post("/answers", json={"question": question})

    response = asyncio.run(ask(TASK))
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [
        dict(line.split(": ", 1) for line in event.splitlines() if ": " in line)
        for event in response.text.split("\n\n")
        if event.strip()
    ]
    kinds = [event["event"] for event in events]
    assert [kind for kind in kinds if kind != "progress"] == ["draft", "answer", "result"]
    assert all("text" in event["data"] for event in events if event["event"] == "progress")
    assert json.loads(events[-1]["data"])["evidence"]
    assert asyncio.run(ask("")).status_code == 422
    assert asyncio.run(ask(" ")).text.startswith("event: error\ndata: ")


def test_the_list_names_every_program() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    programs = {path.name for path in EXAMPLES.glob("*.py")} - {"example_model.py"}
    assert all(f"[{name}]({name})" in listed for name in programs)
