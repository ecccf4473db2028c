"""The node adapter: limits, replies that are handed back, failures, prompts that do not fit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from stepcraft import ModelFailure, NoAnswer, RatContext, RpgContext, build_rat, build_rpg
from stepcraft.contexts.baselines import RagContext
from stepcraft.graphs.baselines import build_rag
from stepcraft.llm.limits import forget
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, THREAD, Shelf, shown

PLAN = "KIND: long\n- Oster"


def asked(model: ScriptedModel, **context: Any) -> Any:
    """Return what a graph of one call makes of the question."""
    graph = build_rag(model=model, sources=Shelf())
    return graph.invoke(QUESTION, context=RagContext(**context))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_calls_are_limited_and_the_call_of_the_answer_is_left(most: int) -> None:
    replies = {
        "plan": [PLAN],
        "generate": ["It has arches [p1]."],
        "revise": ["PART 1\nADD: More."],
    }
    model = ScriptedModel(replies)
    graph = build_rpg(model=model, sources=Shelf())
    result = graph.invoke(QUESTION, context=RpgContext(max_calls=most))
    assert model.nodes == (["generate"] if most == 1 else ["plan", "generate", "revise"][:most])
    assert result["usage"]["calls"] == most
    assert result["answer"].startswith("It has arches")
    assert f"max_calls={most}" in str(result["warnings"])


def test_branches_side_by_side_share_one_counter() -> None:
    draft = "\n\n".join(f"Oster has arch {number}." for number in range(6))
    model = ScriptedModel({"draft": [draft], "revise": ["NO CHANGE"] * 6})
    graph = build_rat(model=model, sources=Shelf())
    result = graph.invoke(QUESTION, context=RatContext(parts_per_call=1, max_calls=4))
    assert model.nodes.count("revise") == 3
    assert result["usage"]["calls"] == 4


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_deadline_ends_the_run_with_the_best_answer_so_far(way: str) -> None:
    model = ScriptedModel(["NO CHANGE"], latency=10)
    graph = build_rat(model=model, sources=Shelf())
    question = {**QUESTION, "draft": "Haldruvin built it."}
    context = RatContext(deadline_s=1)
    if way == "sync":
        result = graph.invoke(question, context=context)
    else:
        result = asyncio.run(graph.ainvoke(question, context=context))
    assert result["answer"] == "Haldruvin built it."
    assert "deadline of 1 s" in str(result["warnings"])
    assert model.calls[0].ended is None, "the call is not waited for"


def test_an_unreadable_reply_is_handed_back_once_with_what_was_wrong() -> None:
    model = ScriptedModel(["", "Haldruvin built it.", "what?", "NO CHANGE"])
    result = build_rat(model=model, sources=Shelf()).invoke(QUESTION)
    assert model.nodes == ["draft", "draft", "revise", "revise"]
    assert "empty" in model.calls[1].messages[-1].text
    *_, reply, answer = model.calls[3].messages
    assert reply.text == "what?"
    assert "NO CHANGE" in answer.text
    assert result["usage"]["nodes"]["revise"]["calls"] == 2


class Status(Exception):
    """An error of a provider's client."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"refused with {status_code}")
        self.status_code = status_code


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        (AIMessage("", additional_kwargs={"refusal": "I may not."}), NoAnswer, "I may not"),
        (Status(401), ModelFailure, "401"),
    ],
)
def test_a_model_or_a_provider_that_refuses_is_not_asked_again(
    reply: Any, error: type[Exception], words: str
) -> None:
    model = ScriptedModel([reply])
    with pytest.raises(error, match=words):
        asked(model)
    assert len(model.calls) == 1


def test_a_resumed_run_that_the_provider_refuses_keeps_what_it_has() -> None:
    model = ScriptedModel(["Haldruvin built it.", Status(401)])
    options: Any = {"checkpointer": InMemorySaver(), "interrupt_before": ["revise"]}
    graph = build_rat(model=model, sources=Shelf(), **options)
    graph.invoke(QUESTION, THREAD)
    forget(graph.get_state(THREAD).values)  # as another process begins
    result = graph.invoke(None, THREAD)
    assert result["answer"] == "Haldruvin built it."
    assert result["usage"]["calls"] == 2


def test_an_interrupt_within_a_model_pauses_the_run() -> None:
    model = ScriptedModel(lambda _node, _prompt: interrupt("May it be asked?"))
    graph = build_rag(model=model, sources=Shelf(), checkpointer=InMemorySaver())
    assert graph.invoke(QUESTION, THREAD)["__interrupt__"][0].value == "May it be asked?"
    assert graph.invoke(Command(resume="Haldruvin."), THREAD)["answer"] == "Haldruvin."


def test_reasoning_and_a_tag_around_the_reply_are_no_part_of_the_answer() -> None:
    reply = "<think>Who was it?</think>\n<answer>\nHaldruvin.\n</answer>"
    assert asked(ScriptedModel([reply]))["answer"] == "Haldruvin."


def test_a_cut_off_reply_is_said() -> None:
    reply = AIMessage("Haldru", response_metadata={"finish_reason": "length"})
    assert "cut off" in str(asked(ScriptedModel([reply]))["warnings"])


def test_passages_that_do_not_fit_are_left_out_and_the_others_stay_numbered() -> None:
    shelf = Shelf(passages={"Oster": "Oster " * 900, "mayor": "The mayor was Ilse Quandt."})
    model = ScriptedModel(["Quandt."])
    graph = build_rag(model=model, sources=shelf)
    result = graph.invoke(QUESTION, context=RagContext(max_input_tokens=700))
    prompt = model.calls[0].prompt
    assert '<passage id="p2">' in prompt
    assert len(shown(prompt, "passage")) == 1
    assert "700" in str(result["warnings"])


def test_a_models_own_cache_asks_nothing_again_also_with_a_deadline() -> None:
    model = ScriptedModel(["Haldruvin built it.", "NO CHANGE"], cache=InMemoryCache())
    graph = build_rat(model=model, sources=Shelf())
    context = RatContext(deadline_s=60)
    first, second = [graph.invoke(QUESTION, context=context)["answer"] for _ in "12"]
    assert (len(model.calls), second) == (2, first)


class SeededModel(ScriptedModel):
    """A model whose provider takes a seed."""

    seed: int | None = None


@pytest.mark.parametrize(
    ("kind", "options"),
    [(SeededModel, {"temperature": 0.5, "seed": 7}), (ScriptedModel, {"temperature": 0.5})],
)
def test_sampling_options_are_sent_only_where_they_are_set_and_taken(
    kind: type[ScriptedModel], options: Any
) -> None:
    model = kind(["Haldruvin.", "Haldruvin."])
    asked(model)
    asked(model, temperature=0.5, seed=7)
    assert [call.kwargs for call in model.calls] == [{}, options]
