"""RAT on checkpointers: its state survives, a run that was killed goes on where it was, and any step can be forked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from stepcraft import RatContext, build_rat
from tests.graphs.killed import THREAD, Dying, chat, kill_within
from tests.scripted import ScriptedModel
from tests.servers.openai_replies import Body
from tests.servers.openai_server import OpenAIServer
from tests.shelf import DRAFT, QUESTION, THOUGHTS, Shelf, thinker

CHANGES = ".x."
"""The third thought is looked up beside the second, and again after it was changed."""
CALLS = ["draft", *["to_query", "revise"] * 4, "finish"]


def rat(checkpointer: Any, model: Any = None) -> Any:
    return build_rat(
        model=model or ScriptedModel(thinker(CHANGES)), retriever=Shelf(), checkpointer=checkpointer
    )


def run(threads: str) -> None:
    """The run that is killed."""
    with SqliteSaver.from_conn_string(threads) as saver:
        rat(saver, "openai:served").invoke(QUESTION, THREAD, durability="sync")


def check_state(kept: Any, result: dict[str, Any]) -> None:
    assert kept.next == ()
    assert {name: kept.values[name] for name in result} == result
    assert (kept.values["thoughts"], kept.values["done"]) == (THOUGHTS, 3)
    assert [revision["changed"] for revision in kept.values["revisions"]] == [False, True, False]


def test_the_state_survives_in_memory() -> None:
    graph = rat(InMemorySaver())
    result = graph.invoke(QUESTION, THREAD)
    check_state(graph.get_state(THREAD), result)


def test_the_state_survives_in_sqlite(tmp_path: Path) -> None:
    file = str(tmp_path / "threads.db")
    with SqliteSaver.from_conn_string(file) as saver:
        result = rat(saver).invoke(QUESTION, THREAD)
    with SqliteSaver.from_conn_string(file) as saver:
        check_state(build_rat(checkpointer=saver).get_state(THREAD), result)


async def test_the_state_survives_in_sqlite_on_a_loop(tmp_path: Path) -> None:
    file = str(tmp_path / "threads.db")
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        result = await rat(saver).ainvoke(QUESTION, THREAD)
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        check_state(await build_rat(checkpointer=saver).aget_state(THREAD), result)


def reply_to(node: str, body: Body) -> str:
    return thinker(CHANGES)(node, "\n\n".join(message["content"] for message in body["messages"]))


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    with OpenAIServer(Dying(reply_to, RatContext())) as server:
        return rat(None, chat(server)).invoke(QUESTION)


@pytest.mark.parametrize(
    ("node", "number", "beside"),
    [
        ("draft", 1, 0),
        ("to_query", 1, 0),
        ("revise", 1, 0),
        ("to_query", 3, 1),
        ("revise", 3, 1),
        ("finish", 1, 0),
    ],
)
def test_a_killed_run_goes_on_without_asking_again(
    tmp_path: Path, undisturbed: dict[str, Any], node: str, number: int, beside: int
) -> None:
    """`beside`: whether the step beside the fatal one was finished, and kept, before the kill."""
    threads = str(tmp_path / "threads.db")
    dying = Dying(reply_to, RatContext(), node, number)
    with OpenAIServer(dying) as server:
        with SqliteSaver.from_conn_string(threads) as saver:
            kill_within(dying, server, rat(saver, chat(server)), beside, run, threads)
        with SqliteSaver.from_conn_string(threads) as saver:
            graph = rat(saver, chat(server))
            result = graph.invoke(None, THREAD)
            assert graph.get_state(THREAD).next == ()
    assert sorted(dying.asked) == sorted([*CALLS, node]), "only the call that it died in was made again"
    assert result == undisturbed
    assert result["usage"]["discarded"]["calls"] == 2


def after(graph: Any, done: int) -> Any:
    """The checkpoint in which so many thoughts are settled."""
    past = graph.get_state_history(THREAD)
    return next(kept for kept in past if kept.values.get("done") == done and kept.values["thoughts"])


@pytest.mark.parametrize(("done", "calls"), [(0, 9), (1, 7), (2, 3), (3, 1)])
def test_a_run_goes_on_from_every_step_of_the_past(done: int, calls: int) -> None:
    model = ScriptedModel(thinker(CHANGES))
    graph = rat(InMemorySaver(), model)
    result = graph.invoke(QUESTION, THREAD)
    made = len(model.calls)
    assert graph.invoke(None, after(graph, done).config) == result
    assert len(model.calls) - made <= calls, "no more than what came after"


def test_a_thought_is_rewritten_by_hand() -> None:
    graph = rat(InMemorySaver())
    graph.invoke(QUESTION, THREAD)
    mine = {"text": "The bridge was built in 1567.\n\n"}
    fork = graph.update_state(after(graph, 1).config, mine, as_node="accept")
    result = graph.invoke(None, fork)
    assert result["revisions"][1]["before"] == mine["text"] + THOUGHTS[1]
    assert result["revisions"][2]["after"].startswith(mine["text"])
    assert result["answer"] == "The answer."


def test_the_thoughts_are_cut_by_hand() -> None:
    graph = rat(InMemorySaver())
    graph.invoke(QUESTION, THREAD)
    cut = {"thoughts": ["".join(THOUGHTS[:2]), THOUGHTS[2]]}
    fork = graph.update_state(after(graph, 0).config, cut, as_node="split")
    result = graph.invoke(None, fork)
    assert [revision["thought"] for revision in result["revisions"]] == cut["thoughts"]
    assert [revision["changed"] for revision in result["revisions"]] == [True, False]


async def test_the_draft_is_rewritten_by_hand_on_a_loop() -> None:
    graph = rat(InMemorySaver())
    await graph.ainvoke(QUESTION, THREAD, interrupt_after=["draft"])
    await graph.aupdate_state(THREAD, {"draft": "One.\n\nTwo."})
    result = await graph.ainvoke(None, THREAD)
    assert [revision["thought"] for revision in result["revisions"]] == ["One.\n\n", "Two."]


def test_the_second_run_of_a_thread_starts_afresh() -> None:
    model = ScriptedModel(thinker(CHANGES))
    graph = rat(InMemorySaver(), model)
    first = graph.invoke(QUESTION, THREAD)
    assert graph.invoke(QUESTION, THREAD) == first
    assert len(model.calls) == 2 * len(CALLS)
    assert graph.invoke({"question": "And who rebuilt it?"}, THREAD)["draft"] == DRAFT
    assert "And who rebuilt it?" in model.calls[-1].prompt


def stopped(model: ScriptedModel, context: RatContext) -> Any:
    """A run that has stopped before its first step."""
    graph = rat(InMemorySaver(), model)
    graph.invoke(QUESTION, THREAD, context=context, interrupt_before=["step"])
    assert graph.get_state(THREAD).next == ("step",)
    return graph


def test_the_clocks_stand_still_while_a_run_is_stopped() -> None:
    context = RatContext(step_deadline_s=0.5, deadline_s=1.5)
    graph = stopped(ScriptedModel(thinker("...")), context)
    rat(None, ScriptedModel(thinker("..."), latency=0.3)).invoke(QUESTION)
    result = graph.invoke(None, THREAD, context=context)
    assert result["warnings"] == []
    assert [revision["skipped"] for revision in result["revisions"]] == ["", "", ""]


def test_the_deadline_of_a_resumed_run_holds_over_its_steps() -> None:
    context = RatContext(deadline_s=0.7, window=1)
    result = stopped(ScriptedModel(thinker("..."), latency=0.2), context).invoke(
        None, THREAD, context=context
    )
    assert "the deadline of 0.7 s has passed" in result["warnings"][-1]
    assert result["revisions"][-1]["skipped"]
    assert result["answer"] == DRAFT


def test_max_calls_counts_over_a_resumption() -> None:
    model = ScriptedModel(thinker("..."))
    context = RatContext(max_calls=6)
    graph = rat(InMemorySaver(), model)
    graph.invoke(QUESTION, THREAD, context=context, interrupt_after=["accept"])
    result = graph.invoke(None, THREAD, context=context)
    assert result["usage"]["calls"] == len(model.calls) == 6
    assert [bool(revision["skipped"]) for revision in result["revisions"]] == [False, False, True]
    assert result["answer"] == "The answer."
