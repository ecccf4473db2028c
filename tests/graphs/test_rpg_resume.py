"""RPG on checkpointers: its state survives, a run that was killed goes on where it was, and any step can be forked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from stepcraft import BadInput, RpgContext, build_rpg
from tests.bridge import GIVEN, PLANS, QUESTION, documents, planner
from tests.graphs.killed import THREAD, Dying, chat, kill_within
from tests.scripted import ScriptedModel
from tests.servers.openai_replies import Body
from tests.servers.openai_server import OpenAIServer
from tests.shelf import Shelf

HOPS = {**QUESTION, "kind": "multihop"}
PAPER = RpgContext(paper=True)
CALLS = [*["plan", "answer"] * 3, "combine"]


def rpg(checkpointer: Any, model: Any = None) -> Any:
    shelf = Shelf(says=documents)
    return build_rpg(model=model or ScriptedModel(planner()), retriever=shelf, checkpointer=checkpointer)


def run(threads: str) -> None:
    """The run that is killed."""
    with SqliteSaver.from_conn_string(threads) as saver:
        rpg(saver, "openai:served").invoke(HOPS, THREAD, context=PAPER, durability="sync")


def check_state(kept: Any, result: dict[str, Any]) -> None:
    assert kept.next == ()
    assert {name: kept.values[name] for name in result} == result
    assert (kept.values["answer_style"], kept.values["plans"]) == ("multihop", PLANS)


def test_the_state_survives_in_memory() -> None:
    graph = rpg(InMemorySaver())
    result = graph.invoke(HOPS, THREAD, context=PAPER)
    check_state(graph.get_state(THREAD), result)


def test_the_state_survives_in_sqlite(tmp_path: Path) -> None:
    file = str(tmp_path / "threads.db")
    with SqliteSaver.from_conn_string(file) as saver:
        result = rpg(saver).invoke({**GIVEN, **HOPS}, THREAD, context=PAPER)
    with SqliteSaver.from_conn_string(file) as saver:
        check_state(build_rpg(checkpointer=saver).get_state(THREAD), result)


async def test_the_state_survives_in_sqlite_on_a_loop(tmp_path: Path) -> None:
    file = str(tmp_path / "threads.db")
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        result = await rpg(saver).ainvoke(HOPS, THREAD, context=PAPER)
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        check_state(await build_rpg(checkpointer=saver).aget_state(THREAD), result)


def reply_to(node: str, body: Body) -> str:
    return planner()(node, "\n\n".join(message["content"] for message in body["messages"]))


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    with OpenAIServer(Dying(reply_to, RpgContext(paper=True))) as server:
        return rpg(None, chat(server)).invoke(HOPS, context=PAPER)


@pytest.mark.parametrize(
    ("node", "number", "beside"),
    [("plan", 1, 1), ("answer", 1, 0), ("plan", 2, 0), ("answer", 2, 0), ("answer", 3, 0), ("combine", 1, 0)],
)
def test_a_killed_run_goes_on_without_asking_again(
    tmp_path: Path, undisturbed: dict[str, Any], node: str, number: int, beside: int
) -> None:
    """`beside`: whether the search beside the fatal call was finished, and kept, before the kill."""
    threads = str(tmp_path / "threads.db")
    dying = Dying(reply_to, RpgContext(paper=True), node, number)
    shelf = Shelf(says=documents)
    with OpenAIServer(dying) as server:
        with SqliteSaver.from_conn_string(threads) as saver:
            kill_within(dying, server, rpg(saver, chat(server)), beside, run, threads)
        with SqliteSaver.from_conn_string(threads) as saver:
            graph = build_rpg(model=chat(server), retriever=shelf, checkpointer=saver)
            result = graph.invoke(None, THREAD)
            assert graph.get_state(THREAD).next == ()
    assert sorted(dying.asked) == sorted([*CALLS, node]), "only the call that it died in was made again"
    assert shelf.queries == [], "what was found is kept"
    assert result == undisturbed


def after(graph: Any, written: int) -> Any:
    """The checkpoint in which so many segments are written and the next is not planned."""
    past = graph.get_state_history(THREAD)
    return next(
        kept
        for kept in past
        if len(kept.values.get("segments", [])) == written and set(kept.next) & {"plan", "combine"}
    )


@pytest.mark.parametrize(("written", "calls"), [(0, 7), (1, 5), (2, 3), (3, 1)])
def test_a_run_goes_on_from_every_step_of_the_past(written: int, calls: int) -> None:
    model = ScriptedModel(planner())
    graph = rpg(InMemorySaver(), model)
    result = graph.invoke(HOPS, THREAD, context=PAPER)
    made = len(model.calls)
    assert graph.invoke(None, after(graph, written).config) == result
    assert len(model.calls) - made == calls, "no more than what came after"


def test_a_plan_is_rewritten_by_hand() -> None:
    graph = rpg(InMemorySaver())
    graph.invoke(QUESTION, THREAD, context=PAPER)
    mine = {"plan": "the birth of Mimar Serun", "signal": ""}
    fork = graph.update_state(after(graph, 1).config, mine, as_node="plan")
    result = graph.invoke(None, fork)
    assert result["plans"][:2] == [PLANS[0], mine["plan"]]
    assert any("born in Kayseri" in one["text"] for one in result["segments"][1]["sentences"])


async def test_a_plan_is_looked_at_by_a_human() -> None:
    graph = rpg(InMemorySaver())
    await graph.ainvoke(QUESTION, THREAD, context=PAPER, interrupt_after=["plan"])
    await graph.aupdate_state(THREAD, {"plan": "the destruction of the bridge of Mostar"}, "plan")
    result = await graph.ainvoke(None, THREAD)
    assert result["plans"][0] == "the destruction of the bridge of Mostar"


def test_the_second_run_of_a_thread_starts_afresh() -> None:
    model = ScriptedModel(planner())
    graph = build_rpg(model=model, checkpointer=InMemorySaver())
    first = graph.invoke({**GIVEN, **HOPS}, THREAD, context=PAPER)
    assert graph.invoke({**GIVEN, **HOPS}, THREAD, context=PAPER) == first
    assert len(model.calls) == 2 * len(CALLS)
    with pytest.raises(BadInput, match="no source is named"):
        graph.invoke(QUESTION, THREAD, context=PAPER)
    again = graph.invoke(QUESTION, THREAD, context={"retrieve": False, "paper": True})
    assert again["evidence"] == []
    assert model.nodes[-1] == "answer", "of the kind that is the default"


def test_max_calls_counts_over_a_resumption() -> None:
    model = ScriptedModel(planner())
    graph = rpg(InMemorySaver(), model)
    context = RpgContext(paper=True, max_calls=5)
    graph.invoke(HOPS, THREAD, context=context, interrupt_after=["answer"])
    result = graph.invoke(None, THREAD, context=context)
    assert result["usage"]["calls"] == len(model.calls) == 5
    assert (len(result["segments"]), result["answer"]) == (2, "Mimar Serun")


def test_the_clock_stands_still_while_a_run_is_stopped() -> None:
    context = RpgContext(paper=True, deadline_s=1.5)
    graph = rpg(InMemorySaver())
    graph.invoke(QUESTION, THREAD, context=context, interrupt_after=["answer"])
    rpg(None, ScriptedModel(planner(), latency=0.3)).invoke(QUESTION, context=PAPER)
    assert graph.invoke(None, THREAD, context=context)["warnings"] == []
