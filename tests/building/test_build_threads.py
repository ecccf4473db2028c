"""Memories built from what agents did: which runs become procedures, and what becomes of them when feedback changes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from stepcraft import open_memory
from stepcraft.building import build_memory
from stepcraft.building.build import BuildReport
from stepcraft.building.ledger import Ledger
from tests.building.built import called
from tests.scripted import ScriptedModel

RUNS = ("kettle", "mug", "jug", "pan")


def thread(thing: str, score: float | None = None) -> dict[str, Any]:
    """A thread in which something is ordered, with what its user said of it."""
    calls = called(f"order_{thing}", f"{thing} ordered with t0k3n-9", token="t0k3n-9", count=2)
    messages = [HumanMessage(f"Order a {thing}"), *calls, AIMessage("Done.")]
    feedback = [] if score is None else [{"key": "success", "score": score}]
    return {
        "thread_id": thing,
        "values": {"messages": [message.model_dump() for message in messages]},
        "feedback": feedback,
    }


def reply(node: str, prompt: str) -> str:
    """The pan was not ordered; all else is written down."""
    thing = next(thing for thing in RUNS if f"Order a {thing}" in prompt)
    if node == "success":
        return "NOT REACHED\nNothing came." if thing == "pan" else "REACHED\nIt came."
    steps = f"1. {thing}call `order_{thing}(count=<count>)`.\n2. {thing}say `<count>`."
    return f"PROCEDURE\nHeading: Goal\nOutput: {thing}ware\nInput: {thing}stuff\n{steps}"


def build(folder: Path, *threads: dict[str, Any]) -> tuple[BuildReport, ScriptedModel]:
    file, model = folder / "threads.jsonl", ScriptedModel(reply)
    file.write_text("\n".join(map(json.dumps, threads)))
    memory = str(folder / "m.db")
    report = build_memory([f"threads:{file}"], memory, embeddings="none", model=model)
    return asyncio.run(report), model


def test_runs_that_succeeded_become_procedures(tmp_path: Path) -> None:
    threads = [thread("kettle", 1), thread("mug", 0), thread("jug"), thread("pan")]
    report, model = build(tmp_path, *threads)
    assert report.failed == []
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        procedures = {each.source: each.steps[0] for each in memory}
    assert procedures == {
        f"threads:{tmp_path}/threads.jsonl?thread={thing}": f"{thing}call `order_{thing}(count=<count>)`."
        for thing in ("kettle", "jug")
    }
    assert sorted(model.nodes) == ["extract", "extract", "success", "success"]
    prompts = "".join(call.prompt for call in model.calls)
    assert ("t0k3n-9" in prompts, 'token: "***"' in prompts) == (False, True)
    with Ledger(tmp_path / "m.db.build", str(tmp_path / "m.db")) as ledger:
        rejected = {task["reason"] for record in ledger.latest(9) for task in record.rejected}
    assert rejected == {"its feedback success is 0", "it did not reach its goal: Nothing came."}


def test_feedback_that_comes_later_counts(tmp_path: Path) -> None:
    build(tmp_path, thread("kettle"), thread("mug", 0))
    report, model = build(tmp_path, thread("kettle", 0), thread("mug", 1))
    assert report.failed == []
    assert model.nodes == ["extract"]
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        stale = {procedure.output: bool(procedure.metadata.get("stale")) for procedure in memory}
    assert stale == {"kettleware": True, "mugware": False}


def test_a_file_that_is_named_differently_is_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    build(Path(), thread("kettle", 1), thread("mug", 1))
    monkeypatch.chdir("/")
    report, model = build(tmp_path, thread("kettle", 0), thread("mug", 1))
    assert (report.unchanged, model.nodes) == (1, [])
    with open_memory(str(tmp_path / "m.db"), embeddings="none") as memory:
        stale = {procedure.output: bool(procedure.metadata.get("stale")) for procedure in memory}
        sources = {procedure.source for procedure in memory}
    assert stale == {"kettleware": True, "mugware": False}
    assert sources == {
        f"threads:{tmp_path}/threads.jsonl?thread={thing}" for thing in ("kettle", "mug")
    }
