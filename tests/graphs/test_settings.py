"""The settings of a run: kept for its resumption, and holding from its first node on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import AagContext, BadInput, RatContext, RpgContext, build_aag, build_rat, build_rpg
from tests.bridge import QUESTION as BRIDGE
from tests.bridge import documents, planner
from tests.graphs import slow_source
from tests.graphs.killed import THREAD
from tests.kitchen import CONTENT, GOAL, PAPER, REVISED, cook, forever, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import DRAFT, QUESTION, Shelf, thinker
from tests.test_public import python

DIFFERENT = "the run was resumed with other settings than it was begun with: {}"


def stopped(context: AagContext, model: ScriptedModel | None = None) -> Any:
    """A run of AAG that has stopped before its revision."""
    model = model or ScriptedModel(cook())
    graph = build_aag(model=model, memory=small_memory(), checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, context=context, interrupt_before=["revise"])
    return graph


@pytest.mark.parametrize("resumed", [None, {}, AagContext()], ids=["none", "an empty dict", "the defaults"])
def test_a_run_that_is_resumed_without_settings_goes_on_with_its_own(resumed: Any) -> None:
    model = ScriptedModel(cook())
    graph = stopped(AagContext(paper=True, critic=False, temperature=0.3), model)
    result = graph.invoke(None, THREAD, context=resumed)
    assert (result["answer"], result["warnings"]) == (REVISED, [])
    assert model.nodes[-1] == "revise"
    assert {call.kwargs["temperature"] for call in model.calls} == {0.3}


async def test_the_settings_hold_on_a_loop_and_in_every_graph() -> None:
    rat = build_rat(model=ScriptedModel(thinker("...")), retriever=Shelf(), checkpointer=InMemorySaver())
    context: Any = RatContext(finish="thoughts", passages_per_step=1)
    await rat.ainvoke(QUESTION, THREAD, context=context, interrupt_after=["split"])
    result = await rat.ainvoke(None, THREAD)
    assert result["answer"] == DRAFT
    assert {len(revision["evidence"]) for revision in result["revisions"]} == {1}
    shelf = Shelf(says=documents)
    rpg = build_rpg(model=ScriptedModel(planner()), retriever=shelf, checkpointer=InMemorySaver())
    context = RpgContext(max_cycles=1, select=False)
    await rpg.ainvoke(BRIDGE, THREAD, context=context, interrupt_after=["plan"])
    result = await rpg.ainvoke(None, THREAD)
    assert len(result["segments"]) == 1
    assert len(result["segments"][0]["sentences"]) == 3, "whole passages"


def test_settings_given_at_the_resumption_hold_and_those_that_differ_are_named() -> None:
    model = ScriptedModel(forever(cook(3)))
    graph = stopped(AagContext(paper=True, critic=False, k=2), model)
    result = graph.invoke(None, THREAD, context=AagContext(paper=True, max_updates=1, k=2))
    assert model.nodes[-2:] == ["critic", "edit"]
    assert result["warnings"] == [DIFFERENT.format("max_updates, critic")]


def test_a_new_run_on_the_thread_starts_from_its_own_settings() -> None:
    model = ScriptedModel(forever(cook()))
    graph = build_aag(model=model, memory=small_memory(), checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, context=AagContext(paper=True, critic=False))
    result = graph.invoke(GOAL, THREAD, context=PAPER)
    assert (model.nodes[-1], result["warnings"]) == ("critic", [])


def test_a_secret_is_not_kept_and_has_to_be_given_again() -> None:
    secret = "Say sk-abcdefgh12345678 to the critic."
    context = AagContext(paper=True, critic_instructions=secret)
    graph = stopped(context, ScriptedModel(cook() | {"critic": [CONTENT] * 2}))
    assert "sk-abcdefgh" not in json.dumps(graph.get_state(THREAD).values)
    with pytest.raises(BadInput, match="begun with a secret in critic_instructions, which is not kept"):
        graph.invoke(None, THREAD)
    assert graph.invoke(None, THREAD, context=context)["warnings"] == []


@pytest.fixture
def slow(request: pytest.FixtureRequest) -> Iterator[str]:
    slow_source.MAY_OPEN.clear()
    yield f"tests.graphs.slow_source:slow_{abs(hash(request.node.name))}"
    slow_source.MAY_OPEN.set()


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("method", ["rat", "rpg"])
async def test_a_source_that_does_not_open_in_time_costs_the_evidence(
    slow: str, method: str, way: str
) -> None:
    graph: Any
    if method == "rat":
        context: Any = RatContext(retriever="slow", deadline_s=1.0, finish="thoughts")
        graph, given = build_rat(model=ScriptedModel(thinker("...")), allow=f"slow={slow}"), QUESTION
    else:
        context = RpgContext(retriever="slow", deadline_s=1.0, paper=True)
        graph, given = build_rpg(model=ScriptedModel(planner()), allow=f"slow={slow}"), BRIDGE
    began = time.monotonic()
    if way == "sync":
        result = graph.invoke(given, context=context)
    else:
        result = await graph.ainvoke(given, context=context)
    assert time.monotonic() - began < 3, "the source takes half a minute"
    assert result["answer"]
    assert result["evidence"] == []
    assert result["warnings"][0].startswith("begin: the run went on before its models and sources were open")
    if method == "rat":
        reasons = {revision["skipped"] for revision in result["revisions"]}
        assert "retrieve: a search failed: it took longer than the deadline allows" in reasons
    else:
        assert [segment["unsupported"] for segment in result["segments"]] == [True] * 3
    slow_source.MAY_OPEN.set()


def test_every_edit_fits_the_recursion_limit_whatever_the_environment_says(tmp_path: Path) -> None:
    code = """
import os
os.environ["LANGGRAPH_DEFAULT_RECURSION_LIMIT"] = "25"
from stepcraft import build_aag
from tests.kitchen import GOAL, cook, forever, small_memory
from tests.scripted import ScriptedModel
graph = build_aag(model=ScriptedModel(forever({**cook(1), "critic": ["- Change the second step."]})), memory=small_memory())
print(len(graph.invoke(GOAL, context={"paper": True, "max_updates": 20})["critiques"]))
"""
    assert python(code) == "20\n"


@pytest.mark.parametrize("context", [RatContext, RpgContext, AagContext])
def test_no_time_limit_is_longer_than_what_waits_can_take(context: Any) -> None:
    with pytest.raises(
        BadInput, match="deadline_s=1e\\+300 cannot be used: it should be less than or equal to"
    ):
        context(deadline_s=1e300)
    longest = context(deadline_s=10_000_000)
    result = build_rat(model=ScriptedModel(thinker("...")), retriever=Shelf()).invoke(
        QUESTION, context=RatContext.of(longest)
    )
    assert result["warnings"] == []


@pytest.mark.parametrize("more", [{"window": "x"}, {"window": 99}])
def test_a_setting_of_several_types_says_what_each_takes(more: Any) -> None:
    with pytest.raises(BadInput, match=r"it should be 'auto' or (a valid integer|less than or equal to 8)$"):
        RatContext(**more)


@pytest.mark.parametrize("name", ["cls", "self", "values"])
def test_a_setting_with_a_name_of_the_constructor_is_unknown(name: str) -> None:
    with pytest.raises(BadInput, match=f"there is no setting '{name}'"):
        AagContext(**{name: 1})  # type: ignore[arg-type]
