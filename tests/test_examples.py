"""The programs in examples/ run as they are, without a key, and show what they are there to show."""

from __future__ import annotations

import asyncio
import json
import runpy
from pathlib import Path
from typing import Any

import httpx
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The names that a program defines; Python puts a program's folder first on the path, and so does this."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return lambda name: runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_the_agent(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    example("agent")["main"]("How do I add long-term memory to a chat agent?")
    told = capsys.readouterr().out
    assert "a scripted one replies" in told
    assert "  revise\n" in told
    assert "\nwrite_procedure:\n1. Create" in told
    assert "\n- let an agent tool save" in told
    assert told.endswith("The agent: The steps above do it; each rests on a procedure.\n")


def test_the_remembering_agent(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    example("remembering_agent")["main"]("bake a rye bread")
    before, _, after = capsys.readouterr().out.partition(
        "To be saved in store:kitchen: bake a rye bread\n- Mix"
    )
    assert "scripted" in before
    empty, _, found = after.partition("The procedure is saved with the id ")
    assert "The memory has no procedure that fits" in empty
    assert f'<evidence id="{found[:36]}">\nhow to bake a rye bread using rye flour' in found
    assert found.endswith("The agent: The procedure is in the memory now.\n")


def test_the_supervisor(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    example("supervisor")["main"]("Which memories can the procedures of an agent be kept in?")
    told = capsys.readouterr().out
    steps = [line.strip() for line in told.splitlines()]
    assert steps.index("supervisor") < steps.index("accept") < steps.index("researcher")
    assert "\nThe supervisor: The notes of the researcher answer it.\n" in told
    assert told.partition("They rest on:\n")[2].startswith("- ")


def test_the_parent_graph(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    example("parent_graph")["main"](["add long-term memory to a chat agent", "stream the steps of an agent"])
    told = capsys.readouterr().out
    assert "InMemoryStore" in told
    assert "stream_mode" in told
    assert "passages, 4 model calls\n" in told, (
        "a plan and two topics would take more without the parent's depth"
    )
    assert told.count("no language model wrote this") == 1


def test_the_review_by_a_person(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    example("human_review")["main"]("add long-term memory to a chat agent")
    before, _, after = capsys.readouterr().out.partition("After it:")
    assert "- Try it out with a colleague." in after
    assert "Try it out" not in before


def test_the_client(example: Any, langgraph_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(example("client")["main"](langgraph_server, ["aag", "rat"], "How does an agent stream?"))
    aag, rat = capsys.readouterr().out.split("\n== ")[1:]
    for told in (aag, rat):
        assert "failed" not in told
        assert len(told.splitlines()) > 8
    assert "   revise\n" in rat or "progress" not in rat


def test_the_endpoint(example: Any) -> None:
    app = example("fastapi_app")["app"]

    async def ask(question: str) -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://example.com"
        ) as client:
            return await client.post("/answers", json={"question": question})

    answered = asyncio.run(ask("How does an agent stream?"))
    assert answered.headers["content-type"].startswith("text/event-stream")
    events = [
        dict(line.split(": ", 1) for line in event.splitlines() if ": " in line)
        for event in answered.text.split("\n\n")
        if event.strip()
    ]
    steps = [json.loads(event["data"]) for event in events if event.get("event") == "step"]
    assert {"nodes": ["revise"]} in steps
    assert events[-1]["event"] == "answer"
    assert json.loads(events[-1]["data"])["evidence"]
    assert asyncio.run(ask("")).status_code == 422
    refused = asyncio.run(ask(" "))
    assert (
        'event: error\ndata: {"message":"the question is empty; say what is wanted"}'
        in refused.text.replace('": "', '":"')
    )


def test_the_list_names_every_program() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    programs = {path.name for path in EXAMPLES.glob("*.py")} - {"example_model.py"}
    assert len(programs) == 7
    assert all(f"[{name}]({name})" in listed for name in programs)
    assert all(len((EXAMPLES / name).read_text("utf-8").splitlines()) <= 80 for name in programs)
