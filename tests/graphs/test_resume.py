"""AAG on checkpointers: its state survives, and a run that was killed goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from stepcraft import AagContext, build_aag, open_memory
from stepcraft.memory.local import LocalMemory
from tests.graphs.killed import THREAD, Dying, chat, kill_within
from tests.kitchen import GOAL, PAPER, PROCEDURES, REVISED, cook, cooked, small_memory
from tests.scripted import ScriptedModel
from tests.servers.openai_server import OpenAIServer

DIFFERENT = "the run was resumed with other settings than it was begun with: {}"


def run(threads: str, procedures: str) -> None:
    """The run that is killed."""
    with (
        SqliteSaver.from_conn_string(threads) as saver,
        open_memory(procedures, embeddings="none") as memory,
    ):
        graph = build_aag(model="openai:served", memory=memory, checkpointer=saver)
        graph.invoke(GOAL, THREAD, context=PAPER, durability="sync")


@pytest.fixture
def memory() -> Iterator[LocalMemory]:
    with small_memory() as opened:
        yield opened


def check_state(graph_state: Any, result: dict[str, Any]) -> None:
    assert graph_state.next == ()
    assert {name: graph_state.values[name] for name in result} == result
    assert graph_state.values["question"] == GOAL["question"]
    assert graph_state.values["draft"] == [
        "Mix the rye flour with water.",
        "[[Let it rise for an hour.]]",
        "Bake it.",
    ]


def test_the_state_survives_in_memory(memory: LocalMemory) -> None:
    graph = build_aag(model=ScriptedModel(cook(1)), memory=memory, checkpointer=InMemorySaver())
    result = graph.invoke(GOAL, THREAD, context=PAPER)
    check_state(graph.get_state(THREAD), result)


def test_the_state_survives_in_sqlite(memory: LocalMemory, tmp_path: Path) -> None:
    file = str(tmp_path / "threads.db")
    with SqliteSaver.from_conn_string(file) as saver:
        model = ScriptedModel(cook(1))
        result = build_aag(model=model, memory=memory, checkpointer=saver).invoke(GOAL, THREAD, context=PAPER)
    with SqliteSaver.from_conn_string(file) as saver:
        check_state(build_aag(checkpointer=saver).get_state(THREAD), result)


async def test_the_state_survives_in_sqlite_on_a_loop(memory: LocalMemory, tmp_path: Path) -> None:
    file = str(tmp_path / "threads.db")
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        model = ScriptedModel(cook(1))
        result = await build_aag(model=model, memory=memory, checkpointer=saver).ainvoke(
            GOAL, THREAD, context=PAPER
        )
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        check_state(await build_aag(checkpointer=saver).aget_state(THREAD), result)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    with OpenAIServer(Dying(cooked, PAPER)) as server, small_memory() as kitchen:
        return build_aag(model=chat(server), memory=kitchen).invoke(GOAL, context=PAPER)


@pytest.mark.parametrize(
    ("node", "number", "beside"),
    [
        ("draft", 1, 1),
        ("to_query", 1, 1),
        ("answer", 3, 3),
        ("revise", 1, 0),
        ("critic", 1, 0),
        ("edit", 1, 0),
    ],
)
def test_a_killed_run_goes_on_without_asking_again(
    tmp_path: Path, undisturbed: dict[str, Any], node: str, number: int, beside: int
) -> None:
    """`beside`: how many calls that ran beside the fatal one were finished, and kept, before the kill."""
    threads, procedures = str(tmp_path / "threads.db"), str(tmp_path / "kitchen.db")
    dying = Dying(cooked, PAPER, node, number)
    with OpenAIServer(dying) as server, open_memory(procedures, embeddings="none", create=True) as kitchen:
        kitchen.add(PROCEDURES)
        with SqliteSaver.from_conn_string(threads) as saver:
            graph = build_aag(model=chat(server), memory=kitchen, checkpointer=saver)
            kill_within(dying, server, graph, beside, run, threads, procedures)
        with SqliteSaver.from_conn_string(threads) as saver:
            graph = build_aag(model=chat(server), memory=kitchen, checkpointer=saver)
            result = graph.invoke(None, THREAD)
            assert graph.get_state(THREAD).next == ()
    expected = ["draft", "to_query", *["answer"] * 4, "revise", "critic", "edit", "critic"]
    assert sorted(dying.asked) == sorted([*expected, node]), "only the call that it died in was made again"
    assert result == undisturbed


def test_the_steps_are_rewritten_by_hand(memory: LocalMemory) -> None:
    model = ScriptedModel(cook())
    graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, context=PAPER, interrupt_after=["revise"])
    graph.update_state(
        THREAD, {"steps": ["Mix it by hand."], "answer": "1. Mix it by hand."}, as_node="revise"
    )
    assert graph.invoke(None, THREAD)["answer"] == "1. Mix it by hand."
    assert "Mix it by hand." in model.calls[-1].prompt


def half(memory: LocalMemory, model: ScriptedModel, context: AagContext) -> Any:
    """A run that has stopped before the revision."""
    graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, context=context, interrupt_before=["revise"])
    assert graph.get_state(THREAD).next == ("revise",)
    return graph


def test_the_deadline_of_a_resumed_run_counts_from_its_resumption(memory: LocalMemory) -> None:
    slow, quick = ScriptedModel(cook(), latency=0.5), ScriptedModel(cook())
    graph = half(memory, slow, PAPER)
    resumed = build_aag(model=quick, memory=memory, checkpointer=graph.checkpointer)
    result = resumed.invoke(None, THREAD, context=AagContext(paper=True, deadline_s=0.9))
    assert result["warnings"] == [DIFFERENT.format("deadline_s")]
    assert quick.nodes == ["revise", "critic"]


def test_the_deadline_of_a_resumed_run_holds(memory: LocalMemory) -> None:
    graph = half(memory, ScriptedModel(cook()), PAPER)
    slow = ScriptedModel(cook(3), latency=0.2)
    resumed = build_aag(model=slow, memory=memory, checkpointer=graph.checkpointer)
    result = resumed.invoke(None, THREAD, context=AagContext(paper=True, deadline_s=0.5))
    assert slow.nodes == ["revise", "critic", "edit"]
    assert "the deadline of 0.5 s has passed" in result["warnings"][-1]
    assert result["answer"] == REVISED


def test_max_calls_counts_over_a_resumption(memory: LocalMemory) -> None:
    model = ScriptedModel(cook(1))
    context = AagContext(paper=True, max_calls=7)
    result = half(memory, model, context).invoke(None, THREAD, context=context)
    assert model.nodes[-2:] == ["answer", "revise"]
    assert result["usage"]["calls"] == len(model.calls) == 7
    assert "max_calls=7 model calls were not enough" in result["warnings"][0]
    assert result["answer"] == REVISED
