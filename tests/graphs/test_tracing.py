"""A run as LangSmith shows it: named, labelled, and without secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tracers import BaseTracer, Run

from stepcraft import AagContext, build_aag
from stepcraft.graphs.aag import MODEL_NODES
from stepcraft.graphs.baselines import ReactContext, build_react
from stepcraft.llm.resources import VERSION
from stepcraft.memory.files import write_jsonl
from tests.kitchen import GOAL, PAPER, PROCEDURES, cook, small_memory
from tests.scripted import ScriptedModel, ToolModel, searching
from tests.shelf import QUESTION, Shelf

PASSWORD = "hunter22"


class Recorder(BaseTracer):
    """Keeps the whole tree of every run, as a tracer would post it."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)

    @property
    def root(self) -> Run:
        [root] = self.roots
        return root

    def runs(self, kind: str = "") -> list[Run]:
        return [run for run in below(self.root) if kind in ("", run.run_type)]


def below(run: Run) -> Iterator[Run]:
    yield run
    for child in run.child_runs:
        yield from below(child)


def metadata(run: Run) -> dict[str, Any]:
    return (run.extra or {}).get("metadata", {})


def ours(run: Run) -> dict[str, Any]:
    return {
        name.removeprefix("stepcraft_"): value
        for name, value in metadata(run).items()
        if name.startswith("stepcraft_")
    }


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def recorded(
    recorder: Recorder, context: AagContext = PAPER, *, critiques: int = 1, on_a_loop: bool = False
) -> Recorder:
    with small_memory() as memory:
        graph = build_aag(model=ScriptedModel(cook(critiques)), memory=memory)
        if on_a_loop:
            asyncio.run(graph.ainvoke(GOAL, {"callbacks": [recorder]}, context=context))
        else:
            graph.invoke(GOAL, {"callbacks": [recorder]}, context=context)
    return recorder


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_the_runs_are_named_after_graph_and_nodes(recorder: Recorder, on_a_loop: bool) -> None:
    root = recorded(recorder, on_a_loop=on_a_loop).root
    assert (root.name, root.run_type, root.error) == ("aag", "chain", None)
    assert root.inputs == GOAL
    assert root.outputs
    assert root.outputs["steps"] == ["Mix.", "Edited 1 times."]
    names = sorted(run.name for run in root.child_runs)
    assert names == sorted(
        [
            "begin",
            "retrieve",
            "draft",
            "to_query",
            "retrieve",
            *["answer"] * 4,
            "revise",
            "critic",
            "edit",
            "critic",
        ]
    )
    for child in root.child_runs:
        models = [run for run in below(child) if run.run_type in ("llm", "chat_model")]
        assert len(models) == (0 if child.name in ("begin", "retrieve") else 1)
        assert all(metadata(run)["langgraph_node"] == child.name for run in models)


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_searches_are_retriever_runs(recorder: Recorder, on_a_loop: bool) -> None:
    searches = recorded(recorder, on_a_loop=on_a_loop).runs("retriever")
    assert len(searches) == 5
    assert {metadata(run)["langgraph_node"] for run in searches} == {"retrieve"}
    assert "How is bread baked?" in {run.inputs["query"] for run in searches}


def test_the_labels_of_a_run_as_it_is(recorder: Recorder) -> None:
    recorded(recorder, AagContext(), critiques=0)
    labels = {"method": "aag", "version": VERSION, "memory": "kitchen"}
    assert ours(recorder.root) == labels
    models = recorder.runs("chat_model") or recorder.runs("llm")
    assert {metadata(run)["langgraph_node"] for run in models} == {node.node for node in MODEL_NODES} - {
        "edit"
    }
    assert all(ours(run) == labels for run in models)


def test_the_labels_name_the_options_that_differ(recorder: Recorder) -> None:
    recorded(
        recorder, AagContext(k=2, alpha=0.0, critic_instructions="Be strict.", n_questions=4), critiques=0
    )
    models = recorder.runs("chat_model") or recorder.runs("llm")
    for run in models:
        labels = ours(run)
        assert labels.pop("version")
        assert labels == {
            "method": "aag",
            "memory": "kitchen",
            "k": 2,
            "alpha": 0.0,
            "critic_instructions": "changed",
        }


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_an_agent_is_labelled_like_the_nodes(recorder: Recorder, on_a_loop: bool) -> None:
    graph = build_react(model=ToolModel([searching("bridge"), "An answer."]), retriever=Shelf())
    context, config = ReactContext(k=2), {"callbacks": [recorder]}
    if on_a_loop:
        asyncio.run(graph.ainvoke(QUESTION, config, context=context))
    else:
        graph.invoke(QUESTION, config, context=context)
    models = recorder.runs("chat_model") or recorder.runs("llm")
    assert len(models) == 2
    for run in models:
        labels = ours(run)
        assert labels.pop("version")
        assert labels == {"method": "react", "source": "Shelf", "k": 2}


def test_the_bundled_memory_is_named(recorder: Recorder) -> None:
    build_aag(model=ScriptedModel(cook())).invoke(
        GOAL, {"callbacks": [recorder]}, context=AagContext(paper=True, questions=False)
    )
    models = recorder.runs("chat_model") or recorder.runs("llm")
    assert {ours(run)["memory"] for run in models} == {"the bundled procedures"}


@pytest.mark.parametrize("given", ["context", "builder", "environment"])
def test_no_secret_is_in_a_trace(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    file = tmp_path / "kitchen.jsonl"
    write_jsonl(PROCEDURES, file)
    url = f"file://cook:{PASSWORD}@localhost{file}"
    if given == "environment":
        monkeypatch.setenv("STEPCRAFT_MEMORY", url)
    named = url if given == "builder" else None
    graph = build_aag(model=ScriptedModel(cook()), memory=named, allow=f"memory:{file}")
    context = (
        AagContext(paper=True, memory=url) if given == "context" else AagContext(paper=True, critic=False)
    )
    result = graph.invoke(GOAL, {"callbacks": [recorder]}, context=context)
    assert {passage["id"] for passage in result["evidence"]} <= {procedure.id for procedure in PROCEDURES}
    models = recorder.runs("chat_model") or recorder.runs("llm")
    assert {ours(run)["memory"] for run in models} == {f"file://***@localhost{file}"}
    for run in recorder.runs():
        posted = [run.inputs, run.outputs, run.extra, run.serialized, run.events, run.tags]
        assert PASSWORD not in repr(posted)
