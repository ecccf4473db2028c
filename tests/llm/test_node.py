"""The node adapter: limits, replies that are handed back, failures, prompts that do not fit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from httpx import HTTPStatusError, Request, Response
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openai.chat_models import base
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from openai import BadRequestError

from stepcraft import (
    ModelFailure,
    NoAnswer,
    RatContext,
    RpgContext,
    build_rat,
    build_rpg,
    get_graph,
)
from stepcraft.contexts.baselines import RagContext
from stepcraft.errors import UnreadableReply
from stepcraft.graphs.baselines import State, build_rag
from stepcraft.llm.node import ModelNode
from stepcraft.llm.resources import Resources
from stepcraft.nodes.begin import Begin
from stepcraft.nodes.draft import no_draft
from stepcraft.nodes.state import Answer, QuestionInput
from tests.scripted import ScriptedModel, block, searching
from tests.shelf import QUESTION, THREAD, Shelf, shown

PLAN = "KIND: long\n- Oster"


def asked(model: ScriptedModel, **context: Any) -> Any:
    """Return what a graph of one call makes of the question."""
    graph = build_rag(model=model, sources=Shelf())
    return graph.invoke(QUESTION, context=RagContext(**context))


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_calls_are_limited_and_the_call_of_the_answer_is_left(most: int) -> None:
    replies = {
        "plan": [PLAN],
        "look_again": ["- arches"],
        "generate": ["It has arches [p1]."],
        "revise": [block(1, new="More.")],
    }
    model = ScriptedModel(replies)
    graph = build_rpg(model=model, sources=Shelf())
    result = graph.invoke(QUESTION, context=RpgContext(max_calls=most, rounds=2))
    before = ["plan", "look_again"][: most - 1]
    assert model.nodes == [*before, "generate", "revise"][:most]
    assert result["usage"]["calls"] == most
    assert result["answer"].startswith("It has arches")
    assert f"max_calls={most}" in str(result["warnings"])


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
    assert "its deadline has passed" in str(result["warnings"])
    assert model.calls[0].ended is None, "the call is not waited for"


def test_an_unreadable_reply_is_handed_back_once_with_what_was_wrong() -> None:
    model = ScriptedModel(["", "Haldruvin built it.", "what?", "NO CHANGE"])
    result = build_rat(model=model, sources=Shelf()).invoke(QUESTION)
    assert model.nodes == ["draft", "draft", "revise", "revise"]
    assert "empty" in model.calls[1].messages[-1].text
    *_, reply, answer = model.calls[3].messages
    assert reply.text == "what?"
    assert "neither a verdict nor a change" in answer.text
    assert result["usage"]["nodes"]["revise"]["calls"] == 2


class Status(Exception):
    """An error of a provider's client."""

    def __init__(self, status_code: int, message: str = "refused") -> None:
        super().__init__(f"{message} with {status_code}")
        self.status_code = status_code


class GoogleError(Exception):
    """An error as Google's client raises it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class BotoError(Exception):
    """An error as boto3 raises it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.response = {"ResponseMetadata": {"HTTPStatusCode": code}}


def http_error(code: int, message: str) -> Exception:
    """Return an error as httpx raises it, and as clients built on it do."""
    request = Request("POST", "http://localhost")
    return HTTPStatusError(message, request=request, response=Response(code, request=request))


def wrapped_error(code: int, message: str) -> Exception:
    """Return an error as an integration raises it in place of that of the client."""
    error = RuntimeError(f"The model failed: {message}")
    error.__cause__ = Status(code, message)
    return error


CLIENTS = [Status, GoogleError, BotoError, http_error, wrapped_error]


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


@pytest.mark.parametrize("error", CLIENTS)
def test_the_status_is_read_from_the_error_of_any_client(error: Any) -> None:
    with pytest.raises(ModelFailure, match="refuses every call"):
        asked(ScriptedModel([error(403, "denied")]))
    model = ScriptedModel([error(400, "Input is too long"), "Haldruvin."])
    assert asked(model)["answer"] == "Haldruvin."
    assert len(shown(model.calls[1].prompt, "passage")) < len(
        shown(model.calls[0].prompt, "passage")
    )
    with pytest.raises(NoAnswer, match="busy"):
        asked(ScriptedModel([error(503, "busy")]))


@pytest.mark.parametrize(
    ("message", "is_shortened"),
    [
        ("Request too large on tokens per min (TPM): Limit 30000, Requested 61235.", True),
        ("Too many tokens, please wait before trying again.", False),
    ],
)
def test_a_prompt_above_the_rate_limit_is_shortened(message: str, is_shortened: bool) -> None:
    model = ScriptedModel([Status(429, message), "Haldruvin."])
    if is_shortened:
        assert asked(model)["answer"] == "Haldruvin."
        return
    with pytest.raises(NoAnswer):
        asked(model)


@pytest.mark.parametrize(
    "words",
    [
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
        "Prompt exceeds max length",
        "Prompt \u8d85\u957f",
        "number of input tokens (167594) has exceeded max_prompt_tokens (163840) limit.",
    ],
)
def test_a_prompt_is_shortened_whatever_a_server_calls_too_long(words: str) -> None:
    assert asked(ScriptedModel([Status(400, words), "Haldruvin."]))["answer"] == "Haldruvin."


def test_an_error_without_a_status_is_no_refusal() -> None:
    error = RuntimeError("Input is too long")
    error.code = True  # type: ignore[attr-defined]
    with pytest.raises(NoAnswer, match="too long"):
        asked(ScriptedModel([error]))


def test_a_resumed_run_that_the_provider_refuses_keeps_what_it_has() -> None:
    model = ScriptedModel(["Haldruvin built it.", Status(401)])
    options: Any = {"checkpointer": InMemorySaver(), "interrupt_before": ["revise"]}
    graph = build_rat(model=model, sources=Shelf(), **options)
    graph.invoke(QUESTION, THREAD)
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


@pytest.mark.parametrize("reason", ["length", "MALFORMED_FUNCTION_CALL"])
def test_the_end_of_a_first_reply_that_is_not_used_is_not_warned_of(reason: str) -> None:
    unused = AIMessage("", response_metadata={"finish_reason": reason})
    result = asked(ScriptedModel([unused, "Haldruvin."]))
    assert (result["answer"], result["warnings"]) == ("Haldruvin.", [])


def test_passages_that_do_not_fit_are_left_out_and_the_others_stay_numbered() -> None:
    shelf = Shelf(passages={"Oster": "Oster " * 900, "mayor": "The mayor was Ilse Quandt."})
    model = ScriptedModel(["Quandt."])
    graph = build_rag(model=model, sources=shelf)
    result = graph.invoke(QUESTION, context=RagContext(max_input_tokens=700))
    prompt = model.calls[0].prompt
    assert '<passage id="p2">' in prompt
    assert len(shown(prompt, "passage")) == 1
    assert "700" in str(result["warnings"])


def test_a_second_prompt_keeps_within_the_limit_with_the_first_reply_in_it() -> None:
    shelf = Shelf(passages={"Oster": "Oster " * 900, "mayor": "The mayor was Ilse Quandt."})
    model = ScriptedModel([f"[TOOL_CALLS]{'x' * 4_000}", "Quandt."])
    graph = build_rag(model=model, sources=shelf)
    result = graph.invoke(QUESTION, context=RagContext(max_input_tokens=2_000))
    assert [len(shown(call.prompt, "passage")) for call in model.calls] == [2, 1]
    assert "1 of 2 passages" in str(result["warnings"])


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


PART = "these words stand in no part"


def noting(reply: str, state: Any, _settings: Any) -> dict[str, Any]:
    """Read a reply such as "a, ?": what is a letter is kept, and the rest is handed back."""
    words = [*state.get("first_update", {"evidence": []})["evidence"], *reply.split(", ")]
    kept = {"answer": " ".join(words).replace(" ?", ""), "evidence": words}
    if "?" in reply:
        raise UnreadableReply(
            PART, update={**kept, "evidence": [each for each in words if each != "?"]}
        )
    return kept


def asked_of(model: Any) -> Any:
    """Return what a graph of one node with one message makes of the model's replies."""
    resources = Resources.of("rag", RagContext, {"model": model})
    node = ModelNode(
        "answer", lambda *_: [HumanMessage("Note it.")], noting, no_draft, is_last=True
    )
    builder: Any = StateGraph(State, RagContext, input_schema=QuestionInput, output_schema=Answer)
    builder.add_node("begin", Begin(resources, ["answer"], lambda *_: {}, searches=False))
    builder.add_node("answer", node.bound(resources))
    builder.add_edge(START, "begin").add_edge("begin", "answer").add_edge("answer", END)
    return builder.compile().invoke(QUESTION)


def test_the_readable_part_of_a_first_reply_reaches_the_second_reading() -> None:
    model = ScriptedModel(["a, ?", "b"])
    result = asked_of(model)
    assert (result["answer"], result["warnings"]) == ("a b", [])
    assert PART in model.calls[1].prompt


def test_a_second_reply_that_cannot_be_read_leaves_what_could_be() -> None:
    result = asked_of(ScriptedModel(["a, ?", "b, ?"]))
    assert result["answer"] == "a b"
    assert PART in str(result["warnings"])


FILTERED = AIMessage("", response_metadata={"finish_reason": "content_filter"})


@pytest.mark.parametrize("second", [RuntimeError("boom"), FILTERED])
def test_a_second_call_that_fails_leaves_the_reason_for_it(second: Any) -> None:
    result = asked_of(ScriptedModel(["a, ?", second]))
    assert result["answer"] == "a"
    assert PART in str(result["warnings"])
    with pytest.raises(NoAnswer, match=r"(boom|content_filter).*it was empty"):
        asked(ScriptedModel(["", second]))
    with pytest.raises(NoAnswer, match=r"max_calls=1.*it was empty"):
        asked(ScriptedModel([""]), max_calls=1)


def test_a_reply_that_was_cut_off_is_taken_in_part_at_once() -> None:
    model = ScriptedModel([AIMessage("a, ?", response_metadata={"finish_reason": "length"})])
    result = asked_of(model)
    assert (result["answer"], len(model.calls)) == ("a", 1)
    assert "cut off" in str(result["warnings"])


def test_calls_of_tools_are_not_handed_back_without_results() -> None:
    model = ScriptedModel([searching("Oster"), "Haldruvin."])
    assert asked(model)["answer"] == "Haldruvin."
    assert [message.type for message in model.calls[1].messages] == ["system", "human", "human"]


# Older versions of the integration pass on the error of the client.
TOO_LONG = getattr(base, "OpenAIContextOverflowError", BadRequestError)(
    "context_length_exceeded",
    response=Response(400, request=Request("POST", "http://localhost")),
    body=None,
)
TOO_LONG_BY_CODE = BadRequestError(
    "This model's maximum context length is 10 tokens.",
    response=Response(400, request=Request("POST", "http://localhost")),
    body={"code": "context_length_exceeded"},
)


@pytest.mark.parametrize("refusal", [TOO_LONG, TOO_LONG_BY_CODE])
@pytest.mark.parametrize("longest", [1, 0])
def test_a_prompt_that_the_model_refuses_as_too_long_has_fewer_passages(
    longest: int, refusal: Exception
) -> None:
    passages = {word: f"{word} stands here." for word in ("Who", "built", "Oster", "mayor")}

    def reply(_node: str, prompt: str) -> Any:
        return refusal if len(shown(prompt, "passage")) > longest else "Haldruvin."

    model = ScriptedModel(reply)
    graph = build_rag(model=model, sources=Shelf(passages=passages))
    result = graph.invoke(QUESTION)
    left = [len(shown(call.prompt, "passage")) for call in model.calls]
    assert (result["answer"], left) == ("Haldruvin.", [4, 2, 1, 0][: 4 - longest])
    assert result["usage"]["calls"] == len(left)
    assert f"{4 - longest} of 4 passages" in str(result["warnings"])


def test_a_passage_that_utf8_cannot_encode_is_measured_too() -> None:
    model = ScriptedModel(["Haldruvin."])
    graph = build_rag(model=model, sources=Shelf(passages={"Oster": "\ud800" * 10}))
    result = graph.invoke(QUESTION, context=RagContext(max_input_tokens=2_000))
    assert (result["answer"], len(shown(model.calls[0].prompt, "passage"))) == ("Haldruvin.", 1)


def test_a_prompt_that_stays_too_long_costs_the_step() -> None:
    model = ScriptedModel([TOO_LONG] * 9)
    with pytest.raises(NoAnswer, match="context_length_exceeded"):
        asked(model)
    assert len(model.calls) == 3


def wrapped(kind: str, model: Any) -> Any:
    """Return a model as LangChain wraps it."""
    other = ScriptedModel(["Quandt."])
    return {
        "retry": lambda: model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False),
        "fallbacks": lambda: model.with_fallbacks([other]),
        "fields": lambda: model.configurable_fields(latency=ConfigurableField("latency")),
        "alternatives": lambda: model.configurable_alternatives(
            ConfigurableField("which"), other=other
        ),
        "bound": lambda: model.bind(stop=["END"]),
        "prompted": lambda: ChatPromptTemplate([MessagesPlaceholder("messages")]) | model,
        "parsed": lambda: model.with_retry() | RunnableLambda(lambda message: message),
        "prompted and retried": lambda: wrapped("prompted", model).with_retry(),
    }[kind]()


WRAPPED = ["retry", "fallbacks", "fields", "alternatives", "bound", "prompted", "parsed"]
WRAPPED += ["prompted and retried"]


@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.parametrize("way", ["sync", "async"])
def test_wrapped_models_are_models(kind: str, way: str) -> None:
    model = wrapped(kind, ScriptedModel(["Haldruvin."] * 2))
    for options in ({"model": model}, {"node_models": {"answer": model}}):
        graph = build_rag(sources=Shelf(), **options)
        result = graph.invoke(QUESTION) if way == "sync" else asyncio.run(graph.ainvoke(QUESTION))
        assert result["answer"] == "Haldruvin."
        assert result["usage"]["output_tokens"] > 0


@pytest.mark.parametrize("kind", WRAPPED)
def test_the_limits_and_options_of_a_wrapped_model_hold(kind: str) -> None:
    model = ScriptedModel(["Haldruvin."] * 2, profile={"max_input_tokens": 500})
    shelf = Shelf(passages={"Oster": "Oster " * 900, "mayor": "The mayor was Ilse Quandt."})
    graph = build_rag(model=wrapped(kind, model), sources=shelf)
    result = graph.invoke(QUESTION, context=RagContext(temperature=0.5))
    assert "1 of 2 passages" in str(result["warnings"])
    assert model.calls[0].kwargs["temperature"] == 0.5


def test_a_fallback_gets_the_options_that_it_takes_and_a_prompt_that_it_takes() -> None:
    first = SeededModel([RuntimeError("503")])
    second = ScriptedModel(["Haldruvin."], profile={"max_input_tokens": 500})
    shelf = Shelf(passages={"Oster": "Oster " * 900, "mayor": "The mayor was Ilse Quandt."})
    graph = build_rag(model=first.with_fallbacks([second]), sources=shelf)
    result = graph.invoke(QUESTION, context=RagContext(temperature=0.5, seed=7))
    options = [model.calls[0].kwargs for model in (first, second)]
    assert options == [{"temperature": 0.5, "seed": 7}, {"temperature": 0.5}]
    assert "1 of 2 passages" in str(result["warnings"])


def test_retries_and_fallbacks_do_their_work() -> None:
    down = RuntimeError("503")
    model = wrapped("retry", ScriptedModel([down, "Haldruvin."]))
    assert asked(model)["answer"] == "Haldruvin."
    assert asked(wrapped("fallbacks", ScriptedModel([down])))["answer"] == "Quandt."


def test_tokens_that_the_prompt_cache_served_are_counted() -> None:
    tokens: Any = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
    cached = {**tokens, "input_token_details": {"cache_read": 6}}
    replies = [
        AIMessage("- mayor", usage_metadata=cached),
        "NOTHING",
        "Quandt.",
        "-",
    ]
    usage = build_rpg(model=ScriptedModel(replies), sources=Shelf()).invoke(QUESTION)["usage"]
    assert (usage["cached_input_tokens"], usage["nodes"]["plan"]["cached_input_tokens"]) == (6, 6)
    assert usage["nodes"]["generate"]["cached_input_tokens"] == 0


def test_a_passage_is_shown_with_its_heading() -> None:
    shelf = Shelf(passages={"Team": "Logs are kept for 45 days. Teammates can be invited."})
    model = ScriptedModel(["It is 45 days."])
    get_graph("rag", model=model, sources=shelf).invoke({"question": "Team logs?"})
    (passage,) = shown(model.calls[0].prompt, "passage")
    assert passage.startswith("Team\nLogs are kept")
