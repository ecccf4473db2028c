"""The baselines: one call each, and an agent that always ends with an answer of the model's own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from stepcraft import BadInput, ModelFailure, NoAnswer, get_graph
from stepcraft.contexts.baselines import RagContext, ReactContext
from tests.scripted import ScriptedModel, ToolModel, searching
from tests.shelf import QUESTION, THREAD, Shelf, ids, shown


@pytest.mark.parametrize(("name", "passages"), [("direct", 0), ("rag", 2)])
def test_one_call(name: str, passages: int) -> None:
    model = ScriptedModel(["Haldruvin."])
    result = get_graph(name, model=model, sources=Shelf()).invoke(QUESTION)
    assert (model.nodes, result["answer"]) == (["answer"], "Haldruvin.")
    assert len(shown(model.calls[0].prompt, "passage")) == len(result["evidence"]) == passages


def test_rag_finds_as_many_passages_as_k_says() -> None:
    graph = get_graph("rag", model=ScriptedModel(["Haldruvin."]), sources=Shelf())
    assert len(graph.invoke(QUESTION, context=RagContext(k=1))["evidence"]) == 1


def test_a_passage_is_shown_with_its_title_unless_the_title_is_among_its_words() -> None:
    shelf = Shelf(passages={"Oster": "It has four arches.", "mayor": "The mayor was Ilse Quandt."})
    model = ScriptedModel(["Haldruvin."])
    get_graph("rag", model=model, sources=shelf).invoke(QUESTION)
    assert shown(model.calls[0].prompt, "passage") == [
        "Oster\nIt has four arches.",
        "The mayor was Ilse Quandt.",
    ]


def agent(*replies: Any, **context: Any) -> tuple[Any, ToolModel, Shelf]:
    model, shelf = ToolModel(replies), Shelf()
    graph = get_graph("react", model=model, sources=shelf)
    return graph.invoke(QUESTION, context=ReactContext(**context)), model, shelf


def test_the_agent_searches_and_answers() -> None:
    result, _, shelf = agent(searching("Oster"), searching("mayor"), "Haldruvin, under Quandt.")
    assert shelf.queries == ["Oster", "mayor"]
    assert (result["answer"], result["usage"]["calls"]) == ("Haldruvin, under Quandt.", 3)
    assert ids(result) == ["Oster", "mayor"]


def test_the_answer_of_the_agent_is_streamed_as_the_answer() -> None:
    graph = get_graph("react", model=ToolModel(["Haldruvin."]), sources=Shelf())
    events = graph.stream(QUESTION, stream_mode="custom")
    assert [each["type"] for each in events if each["type"] != "progress"] == ["answer"]


def test_a_search_names_the_passages_that_another_one_has_shown() -> None:
    _, model, _ = agent(searching("Oster"), searching("Oster and mayor"), "Haldruvin.")
    first, second = (each.text for each in model.calls[-1].messages if each.type == "tool")
    assert (len(shown(first, "passage")), "another search" in first) == (1, False)
    assert len(shown(second, "passage")) == 1
    assert second.endswith("\n\nAlso p1, shown with another search.")


def test_at_the_limit_of_searches_the_agent_is_told_to_answer() -> None:
    calls = [searching("Oster"), searching("mayor"), "Haldruvin."]
    result, model, shelf = agent(*calls, max_searches=2)
    assert (shelf.queries, result["answer"]) == (["Oster", "mayor"], "Haldruvin.")
    assert model.nodes == ["model"] * 3
    assert "up to 2 in all" in model.calls[0].prompt
    told = [each.text for each in model.calls[-1].messages if each.type == "human"]
    assert "Answer now" in told[-1]
    assert "Answer now" not in model.calls[1].prompt
    # The call continues the conversation, which a provider's cache serves.
    assert model.calls[-1].messages[: len(model.calls[1].messages)] == model.calls[1].messages


def test_an_agent_that_searches_on_makes_no_more_searches_and_still_answers() -> None:
    calls = [searching("Oster"), searching("mayor"), searching("the bridge"), "Haldruvin."]
    result, model, shelf = agent(*calls, max_searches=2)
    assert (shelf.queries, result["answer"]) == (["Oster", "mayor"], "Haldruvin.")
    assert model.nodes == [*["model"] * 3, "answer"]
    assert len(shown(model.calls[-1].prompt, "passage")) == 2
    assert "tools" not in model.calls[-1].kwargs


def test_what_an_agent_says_before_a_search_is_no_answer() -> None:
    second = searching("mayor").model_copy(update={"content": "I look for the mayor."})
    result, _, _ = agent(searching("Oster"), second, "Haldruvin.", max_searches=1)
    assert (result["answer"], result["warnings"]) == ("Haldruvin.", [])


def test_the_agent_and_the_call_without_tools_write_by_the_same_instructions() -> None:
    _, model, _ = agent(searching("Oster"), "Done.", answer_instructions="Write a sonnet.")
    assert "Write a sonnet." in model.calls[0].prompt
    _, model, _ = agent("Done.", max_calls=1, answer_instructions="Write a sonnet.")
    assert "Write a sonnet." in model.calls[0].prompt


@pytest.mark.parametrize("way", ["sync", "async"])
def test_searches_at_once_lose_nothing_and_repeat_nothing(way: str) -> None:
    words = ["Oster", "mayor", "Haldruvin", "the Oster bridge"]
    calls = [{"name": "search", "args": {"query": word}, "id": word} for word in words]
    model = ToolModel([AIMessage("", tool_calls=calls), "Done."])
    graph = get_graph("react", model=model, sources=Shelf())
    result = asyncio.run(graph.ainvoke(QUESTION)) if way == "async" else graph.invoke(QUESTION)
    results = [each.text for each in model.calls[-1].messages if each.type == "tool"]
    assert sorted(ids(result)) == ["Haldruvin", "Oster", "mayor"]
    assert all(word in text for word, text in zip(words, results, strict=True))
    assert sum(len(shown(text, "passage")) for text in results) == 3
    assert sum("shown with another search" in text for text in results) >= 1


def test_a_search_of_the_agents_that_fails_is_reported() -> None:
    def fail(query: str) -> None:
        if query == "mayor":
            raise ConnectionError("the wire is cut")

    model = ToolModel([searching("Oster"), searching("mayor"), "Haldruvin."])
    result = get_graph("react", model=model, sources=Shelf(fail=fail)).invoke(QUESTION)
    assert (result["answer"], ids(result)) == ("Haldruvin.", ["Oster"])
    assert "the wire is cut" in str(result["warnings"])


def test_an_agent_whose_model_cannot_call_tools_says_so() -> None:
    result = get_graph("react", model="extractive", sources=Shelf()).invoke(QUESTION)
    problem = (
        "the agent failed: react needs a model that can call tools, and extractive cannot; name"
    )
    assert any(each.startswith(problem) for each in result["warnings"])


def test_an_agent_that_calls_a_tool_that_there_is_not_goes_on() -> None:
    unknown = AIMessage("", tool_calls=[{"name": "lookup", "args": {}, "id": "1"}])
    result, _, shelf = agent(unknown, searching("Oster"), "Haldruvin.")
    assert (result["answer"], shelf.queries, ids(result)) == ("Haldruvin.", ["Oster"], ["Oster"])


def test_a_failing_agent_leaves_the_answer_to_one_call() -> None:
    result, _, _ = agent(RuntimeError("out of order"), "Haldruvin.")
    assert result["answer"] == "Haldruvin."
    assert "out of order" in str(result["warnings"])


def test_the_calls_of_a_failing_agent_are_counted() -> None:
    replies = [searching("Oster"), searching("mayor"), RuntimeError("503"), "Haldruvin."]
    result, model, _ = agent(*replies, max_calls=4)
    assert (result["answer"], len(model.calls), result["usage"]["calls"]) == ("Haldruvin.", 4, 4)
    assert result["usage"]["nodes"]["agent"]["output_tokens"] == 0 < result["usage"]["input_tokens"]
    assert ids(result) == ["Oster", "mayor"]


@pytest.mark.parametrize(("most", "calls"), [(1, ["answer"]), (2, ["model", "answer"])])
def test_one_call_is_reserved_for_the_agents_answer(most: int, calls: list[str]) -> None:
    def reply(node: str, _prompt: str) -> Any:
        return searching("Oster") if node == "model" else "Haldruvin."

    model = ToolModel(reply)
    graph = get_graph("react", model=model, sources=Shelf())
    result = graph.invoke(QUESTION, context=ReactContext(max_calls=most))
    assert (model.nodes, result["usage"]["calls"]) == (calls, most)
    assert result["answer"] == "Haldruvin."
    assert f"max_calls={most} was not enough" in str(result["warnings"])


def test_an_agent_asks_nothing_after_the_deadline_of_a_blocking_run() -> None:
    has_ended = threading.Event()

    def reply(_node: str, _prompt: str) -> Any:
        has_ended.wait(20)
        return searching("Oster")

    model = ToolModel(reply)
    graph = get_graph("react", model=model, sources=Shelf())
    with pytest.raises(NoAnswer):
        graph.invoke(QUESTION, context=ReactContext(deadline_s=0.3))
    threads = [each for each in threading.enumerate() if each.name == "stepcraft"]
    has_ended.set()
    for thread in threads:
        thread.join(20)
    assert len(model.calls) == 1


def test_an_agent_whose_conversation_grows_too_long_leaves_the_answer_to_one_call() -> None:
    shelf = Shelf(passages={"Oster": "It has four arches. " * 40})
    model = ToolModel([searching("Oster"), "Haldruvin."])
    graph = get_graph("react", model=model, sources=shelf)
    context = ReactContext(
        max_input_tokens=220, agent_instructions="Search.", answer_instructions="Write."
    )
    result = graph.invoke(QUESTION, context=context)
    assert (model.nodes, result["answer"]) == (["model", "answer"], "Haldruvin.")
    assert "1 of 1 passages" in str(result["warnings"])


def test_settings_and_bound_options_reach_the_model_of_the_agent() -> None:
    model = ToolModel([searching("Oster"), "Haldruvin."])
    bound: Any = model.bind(top_p=0.5).with_retry().bind(user="cook")
    graph = get_graph("react", model=bound, sources=Shelf())
    context = ReactContext(temperature=0.1, system_role=False)
    result = graph.invoke(QUESTION, context=context)
    options = {"top_p": 0.5, "user": "cook", "temperature": 0.1}
    assert [call.kwargs | options for call in model.calls] == [call.kwargs for call in model.calls]
    assert model.calls[0].messages[0].type == "human"
    assert (result["answer"], result["warnings"]) == ("Haldruvin.", [])


@pytest.mark.parametrize("name", ["direct", "rat", "rpg"])
@pytest.mark.parametrize("reply", ["<answer></answer>", "<answer>\n</answer>"])
def test_a_reply_that_is_empty_inside_its_wrapping_is_handed_back_once(
    name: str, reply: str
) -> None:
    model = ScriptedModel(lambda node, _: "- a" if node in {"plan", "look_again"} else reply)
    with pytest.raises(NoAnswer, match="no text in it"):
        get_graph(name, model=model, sources=Shelf()).invoke(QUESTION)


def test_a_prompt_that_stays_too_long_is_warned_of() -> None:
    graph = get_graph("direct", model=ScriptedModel(["Haldruvin."]))
    question = {"question": "Who built it? " * 100}
    result = graph.invoke(question, context={"max_input_tokens": 200})
    assert "longer than the limit of 200 input tokens" in str(result["warnings"])


def test_an_answer_of_the_agent_that_was_cut_off_is_warned_of() -> None:
    half = AIMessage("Limited to 10", response_metadata={"finish_reason": "length"})
    result, _, _ = agent(half)
    assert "agent: the reply was cut off" in str(result["warnings"])


@pytest.mark.parametrize("tokens", [{"input_tokens": None}, {"output_tokens": 3}])
def test_a_provider_that_counts_no_tokens_ends_no_run(tokens: Any) -> None:
    reply = AIMessage("Haldruvin.")
    reply.usage_metadata = tokens
    result = get_graph("direct", model=ScriptedModel([reply])).invoke(QUESTION)
    assert result["usage"]["output_tokens"] == tokens.get("output_tokens", 0)


@pytest.mark.parametrize("number", range(3))
def test_an_agent_that_was_interrupted_goes_on_with_what_it_found(number: int) -> None:
    replies = [searching("Oster"), searching("mayor"), "Haldruvin, under Quandt."]
    whole, _, _ = agent(*replies, max_searches=2)
    saver, shelf = InMemorySaver(), Shelf()

    def run(given: Any, *left: Any) -> Any:
        graph = get_graph("react", model=ToolModel(left), sources=shelf, checkpointer=saver)
        return graph.invoke(given, THREAD, context=ReactContext(max_searches=2))

    with pytest.raises(KeyboardInterrupt):
        run(QUESTION, *replies[:number], KeyboardInterrupt())
    result = run(None, *replies[number:])
    assert shelf.queries == ["Oster", "mayor"]
    assert result["answer"] == whole["answer"]
    assert result["evidence"] == whole["evidence"]
    assert result["usage"]["calls"] == 3


def test_an_agent_that_is_paused_within_a_search_keeps_the_others_of_its_turn() -> None:
    def fail(query: str) -> None:
        if query == "mayor":
            interrupt(query)

    saver, shelf = InMemorySaver(), Shelf(fail=fail)

    def run(given: Any, *replies: Any) -> Any:
        graph = get_graph("react", model=ToolModel(replies), sources=shelf, checkpointer=saver)
        return graph.invoke(given, THREAD, context=ReactContext(max_searches=4))

    run(QUESTION, searching("Oster", "mayor", "nothing"))
    result = run(Command(resume="Go on."), searching("Haldruvin"), "Haldruvin, under Quandt.")
    # Earlier versions of LangChain make all calls of a turn again.
    assert {*shelf.queries} == {"Haldruvin", "Oster", "mayor", "nothing"}
    assert sorted(ids(result)) == ["Haldruvin", "Oster", "mayor"]
    assert result["answer"] == "Haldruvin, under Quandt."
    assert result["usage"]["calls"] == 3


def test_an_agent_takes_a_model_with_fallbacks() -> None:
    second = ToolModel([searching("Oster"), "Haldruvin."])
    model = ToolModel([RuntimeError("503")] * 2).with_fallbacks([second])
    result = get_graph("react", model=model, sources=Shelf()).invoke(QUESTION)
    assert (result["answer"], result["warnings"]) == ("Haldruvin.", [])
    assert result["usage"]["nodes"]["agent"]["calls"] == 4


def test_an_agent_keeps_the_options_of_a_model_and_of_its_fallbacks() -> None:
    first = ToolModel([RuntimeError("503")] * 2)
    second = ToolModel([searching("Oster"), "Haldruvin."])
    model: Any = first.bind(top_p=0.5).with_fallbacks([second.bind(top_p=0.7)]).bind(user="cook")
    graph = get_graph("react", model=model, sources=Shelf())
    graph.invoke(QUESTION, context=ReactContext(temperature=0.1))
    for each, top_p in ((first, 0.5), (second, 0.7)):
        options = [(call.kwargs["top_p"], call.kwargs["temperature"]) for call in each.calls]
        assert options == [(top_p, 0.1)] * 2


def test_a_model_that_replied_to_the_agent_is_not_one_that_refuses_every_call() -> None:
    class Refused(Exception):
        status_code = 403

    with pytest.raises(NoAnswer, match="could not be asked"):
        agent(searching("Oster"), Refused("later"), Refused("again"))
    with pytest.raises(ModelFailure):
        agent(Refused("at once"), Refused("again"))


def test_an_agent_takes_a_model_with_retries() -> None:
    model = ToolModel([RuntimeError("503"), searching("Oster"), "Haldruvin."])
    retried = model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    result = get_graph("react", model=retried, sources=Shelf()).invoke(QUESTION)
    assert (result["answer"], result["warnings"], ids(result)) == ("Haldruvin.", [], ["Oster"])
    second = ToolModel([searching("Oster"), "Haldruvin."])
    both = ToolModel([RuntimeError("503")] * 9).with_retry().with_fallbacks([second.with_retry()])
    result = get_graph("react", model=both, sources=Shelf()).invoke(QUESTION)
    assert (result["answer"], result["warnings"], ids(result)) == ("Haldruvin.", [], ["Oster"])


@pytest.mark.parametrize("reason", ["abort", "error", "pause_turn", "OTHER"])
def test_a_reply_that_ended_for_an_odd_reason_is_warned_of(reason: str) -> None:
    half = AIMessage("Limited to 10", response_metadata={"finish_reason": reason})
    result = get_graph("direct", model=ScriptedModel([half])).invoke(QUESTION)
    assert f"may be incomplete: it ended with {reason.lower()!r}" in str(result["warnings"])


def test_a_model_that_replies_with_a_text_is_refused() -> None:
    model: Any = ScriptedModel(["Haldruvin."]) | StrOutputParser()
    with pytest.raises(BadInput, match="not with a message"):
        get_graph("direct", model=model).invoke(QUESTION)


@pytest.mark.parametrize("which", ["both", "one"])
def test_an_agent_is_told_that_a_search_failed(which: str) -> None:
    def fail(query: str) -> None:
        if which == "both" or query == "Oster":
            raise ConnectionError("the source is down")

    model = ToolModel([searching("Oster", "Quandt"), "It is unknown."])
    result = get_graph("react", model=model, sources=Shelf(fail=fail)).invoke(QUESTION)
    results = [each.text for each in model.calls[1].messages if each.type == "tool"]
    assert ["failed" in each for each in results] == [True, which == "both"]
    assert "the source is down" in str(result["warnings"])
    assert ("every search failed" in str(result["warnings"])) == (which == "both")
