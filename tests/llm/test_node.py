"""The adapter that calls models: retries, odd replies, budgets, prompt size; against a local OpenAI-compatible server."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI

from stepcraft import AagContext, ModelFailure, NoAnswer, Procedure, build_aag
from stepcraft.memory.local import LocalMemory
from tests.kitchen import CONTENT, DRAFT, GOAL, QUESTIONS, REVISED, cook, forever, small_memory
from tests.scripted import ScriptedModel
from tests.servers.openai_replies import Reply, cut, empty_choices, error, garbage, hang, overflow
from tests.servers.openai_server import OpenAIServer

SHORT = {"questions": False, "critic": False, "retry_wait_s": 0}
"""A run of one call: the draft."""


@pytest.fixture
def memory() -> Iterator[LocalMemory]:
    with small_memory() as opened:
        yield opened


@pytest.fixture(params=["sync", "async", "stream"])
def ask(request: pytest.FixtureRequest, memory: LocalMemory) -> Callable[..., Any]:
    """Runs AAG on a model, blocking, on an event loop, or with its tokens streamed."""

    def run(model: Any, **context: Any) -> Any:
        graph = build_aag(model=model, memory=memory)
        settings = AagContext(paper=True, **context)
        if request.param == "sync":
            return graph.invoke(GOAL, context=settings)
        if request.param == "async":
            return asyncio.run(graph.ainvoke(GOAL, context=settings))
        *_, (_, last) = (
            part
            for part in graph.stream(GOAL, context=settings, stream_mode=["messages", "values"])
            if part[0] == "values"
        )
        return last

    return run


def served(server: OpenAIServer, **options: Any) -> ChatOpenAI:
    settings: dict[str, Any] = {
        "max_retries": 0,
        "stream_usage": True,
        "default_headers": {"Connection": "close"},
    }
    return ChatOpenAI(
        model="served", base_url=server.base_url, api_key="sk-local-0123456789", **settings | options
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fault",
    [
        error(408),
        error(409),
        error(429, retry_after="0"),
        error(500),
        error(503),
        cut(),
        garbage(),
        empty_choices(),
    ],
    ids=["408", "409", "429", "500", "503", "cut", "garbage", "no choices"],
)
def test_what_may_pass_is_tried_three_times(ask: Any, fault: Reply) -> None:
    with OpenAIServer([fault, fault, DRAFT]) as server:
        result = ask(served(server), **SHORT)
    assert result["steps"][0] == "Mix the rye flour with water."
    assert result["warnings"] == []
    assert len(server.requests) == 3
    assert result["usage"]["nodes"]["draft"]["calls"] == 3


def test_three_attempts_and_no_more(ask: Any) -> None:
    with (
        OpenAIServer([error(500)] * 9) as server,
        pytest.raises(NoAnswer, match="no steps were written: draft was skipped"),
    ):
        ask(served(server), **SHORT)
    assert len(server.requests) == 3


def test_a_refused_connection_may_pass(ask: Any) -> None:
    with OpenAIServer([]) as server:
        model = served(server)
    with pytest.raises(NoAnswer, match=r"draft was skipped: the model could not be asked: .*Connection"):
        ask(model, **SHORT)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refused_for_good_is_not_repeated(ask: Any, status: int) -> None:
    with OpenAIServer([error(status, "no: sk-local-0123456789")] * 9) as server:
        with pytest.raises(
            ModelFailure, match=r"the model 'served' refuses every call: .* Check its name and its key"
        ) as caught:
            ask(served(server), **SHORT)
        assert len(server.requests) == 1
    assert "sk-local" not in str(caught.value)


@pytest.mark.parametrize("fault", [error(400), overflow()], ids=["400", "overflow"])
def test_a_bad_request_is_not_repeated(ask: Any, fault: Reply) -> None:
    with OpenAIServer([fault] * 9) as server:
        with pytest.raises(NoAnswer, match="draft was skipped"):
            ask(served(server), **SHORT)
        assert len(server.requests) == 1


def test_one_layer_retries_a_model_that_does_so_itself(ask: Any) -> None:
    with OpenAIServer([error(429, retry_after="0")] * 9) as server:
        with pytest.raises(NoAnswer):
            ask(served(server, max_retries=1), **SHORT)
        assert len(server.requests) == 2


def test_retry_after_is_honoured(ask: Any) -> None:
    with OpenAIServer([error(429, retry_after="0.3"), DRAFT]) as server:
        ask(served(server), **SHORT)
        first, second = server.requests
    assert second.at - first.at >= 0.3


def test_a_wait_beyond_the_deadline_is_not_begun(ask: Any) -> None:
    began = time.monotonic()
    with OpenAIServer([error(429, retry_after="30")] * 3) as server, pytest.raises(NoAnswer):
        ask(served(server), deadline_s=5, **SHORT)
    assert time.monotonic() - began < 5
    assert len(server.requests) == 1


def test_the_deadline_ends_a_call_that_hangs(ask: Any) -> None:
    replies: dict[str, Any] = {"draft": [DRAFT], "to_query": [QUESTIONS]}

    def script(body: Any) -> Any:
        prompt = body["messages"][0]["content"]
        node = "draft" if "write procedures" in prompt else "to_query" if "outline" in prompt else "hangs"
        return replies[node][0] if node in replies else hang()

    began = time.monotonic()
    with OpenAIServer(script) as server:
        result = ask(served(server), deadline_s=1.5, retry_wait_s=0)
        assert time.monotonic() - began < 4
    assert result["steps"] == ["Mix the rye flour with water.", "Let it rise for an hour.", "Bake it."]
    assert result["warnings"] == [
        "the run stopped early: the deadline of 1.5 s has passed; raise deadline_s for a complete answer"
    ]


def test_usage_by_node(ask: Any, memory: LocalMemory) -> None:
    with OpenAIServer([DRAFT]) as server:
        usage = ask(served(server), **SHORT)["usage"]
    assert usage["calls"] == 1
    assert usage["input_tokens"] > 0
    assert usage["output_tokens"] > 0
    assert usage["nodes"] == {
        "draft": {name: usage[name] for name in ("calls", "input_tokens", "output_tokens")}
    }


def test_a_model_used_on_two_event_loops(memory: LocalMemory) -> None:
    with OpenAIServer(lambda _: DRAFT) as server:
        graph = build_aag(model=served(server), memory=memory)
        for _ in range(3):
            assert asyncio.run(graph.ainvoke(GOAL, context=AagContext(paper=True, **SHORT)))["steps"]


WRAPPED = {
    "fenced": "```\n1. Mix.\n2. Bake.\n```",
    "markdown": "```markdown\n1. Mix.\n2. Bake.\n```",
    "preamble": "Sure, here is the procedure:\n\n1. Mix.\n2. Bake.\n\nLet me know if you need more!",
    "thinking": "<think>1. Let me see.\n2. Hm.</think>\n1. Mix.\n2. Bake.",
    "chinese": "1、Mix.\n2、Bake.",
    "steps": "**Step 1:** Mix.\n\n**Step 2:** Bake.",
}


@pytest.mark.parametrize("reply", WRAPPED.values(), ids=WRAPPED)
def test_wrapped_replies_are_read(ask: Any, reply: str) -> None:
    result = ask(ScriptedModel([reply]), **SHORT)
    assert result["steps"] == ["Mix.", "Bake."]
    assert result["warnings"] == []


def test_content_of_blocks(ask: Any) -> None:
    blocks = [
        {"type": "reasoning", "reasoning": "1. No step."},
        {"type": "text", "text": "1. Mix.\n2. Bake."},
    ]
    assert ask(ScriptedModel([AIMessage(blocks)]), **SHORT)["steps"] == ["Mix.", "Bake."]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "odd", ["", "   ", "I would start by thinking about it."], ids=["empty", "blank", "prose"]
)
def test_an_unreadable_reply_is_handed_back_once(ask: Any, odd: str) -> None:
    model = ScriptedModel([odd, DRAFT])
    result = ask(model, **SHORT)
    assert result["steps"]
    assert result["warnings"] == []
    told = model.calls[1].messages[-1].text
    assert "Your reply could not be used" in told
    assert ("it was empty" in told) == (not odd.strip())
    assert [message.text for message in model.calls[1].messages if message.type == "ai"] == [odd] * bool(
        odd.strip()
    )


def test_unreadable_twice_costs_the_step(ask: Any) -> None:
    model = ScriptedModel(forever(cook() | {"revise": ["Looks good to me."]}))
    result = ask(model, critic=False)
    assert model.nodes.count("revise") == 2
    assert result["steps"] == ["Mix the rye flour with water.", "Let it rise for an hour.", "Bake it."]
    assert result["warnings"] == [
        "revise was skipped: the model's reply could not be read, asked twice: "
        "there was no numbered list of steps in it."
    ]


REFUSALS = {
    "text": AIMessage("I'm sorry, but I can't help with that."),
    "field": AIMessage("", additional_kwargs={"refusal": "No."}),
    "block": AIMessage([{"type": "refusal", "refusal": "No."}]),
    "filter": AIMessage("", response_metadata={"finish_reason": "content_filter"}),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_not_asked_again(ask: Any, refusal: AIMessage) -> None:
    model = ScriptedModel(forever(cook() | {"revise": [refusal]}))
    result = ask(model, critic=False)
    assert model.nodes.count("revise") == 1
    assert result["warnings"][0].startswith("revise was skipped: the model declined: ")
    assert result["steps"]


def test_a_reply_that_was_cut_off_is_used_with_a_warning(ask: Any) -> None:
    reply = AIMessage("1. Mix.\n2. Ba", response_metadata={"finish_reason": "length"})
    result = ask(ScriptedModel([reply]), **SHORT)
    assert result["steps"] == ["Mix.", "Ba"]
    assert result["warnings"] == [
        "draft: the reply was cut off by the token limit; raise the model's max_tokens"
    ]


def test_reasoning_that_takes_all_tokens_is_told_so(ask: Any) -> None:
    nothing = AIMessage("", response_metadata={"finish_reason": "length"})
    model = ScriptedModel([nothing, DRAFT])
    result = ask(model, **SHORT)
    assert "it was cut off before any text" in model.calls[1].messages[-1].text
    assert result["warnings"] == [
        "draft: the reply was cut off by the token limit; raise the model's max_tokens"
    ]


@pytest.mark.parametrize("limit", range(1, 14))
def test_max_calls_is_never_exceeded(ask: Any, limit: int) -> None:
    model = ScriptedModel(forever(cook(3)))
    result = ask(model, max_calls=limit)
    assert len(model.calls) <= limit
    assert result["usage"]["calls"] == len(model.calls)
    stopped = f"the run stopped early: max_calls={limit} model calls were not enough; raise it for a complete answer"
    assert result["warnings"] == ([stopped] if limit < 13 else [])
    assert result["steps"]


def test_parallel_branches_that_ask_twice_keep_within_max_calls(ask: Any) -> None:
    model = ScriptedModel(forever(cook() | {"answer": [""]}))
    result = ask(model, max_calls=8)
    assert len(model.calls) <= 8
    assert result["steps"]


def test_the_deadline_holds_for_parallel_branches(ask: Any) -> None:
    model = ScriptedModel(forever(cook()), latency=1.0)
    began = time.monotonic()
    result = ask(model, deadline_s=1.5)
    assert time.monotonic() - began < 3, "the next two calls alone would take until then"
    assert result["steps"]
    assert result["warnings"] == [
        "the run stopped early: the deadline of 1.5 s has passed; raise deadline_s for a complete answer"
    ]


def test_the_least_similar_examples_are_left_out_of_a_long_prompt() -> None:
    many = [Procedure("flour", f"bake bread {'rye ' * fit}", ("Do this. " * 60,)) for fit in range(5)]
    model = ScriptedModel(cook())
    with LocalMemory(":memory:", embeddings="none") as memory:
        memory.add(many)
        result = build_aag(model=model, memory=memory).invoke(
            {"question": "bake bread rye"},
            context=AagContext(paper=True, k=5, max_input_tokens=800, questions=False, critic=False),
        )
    shown = [line for line in model.calls[0].prompt.splitlines() if line.startswith("how to bake bread")]
    best = [passage["title"] for passage in result["evidence"]]
    assert 0 < len(shown) < 5
    assert [line.removeprefix("how to ").removesuffix(" using flour") for line in shown] == best[: len(shown)]
    assert "<goal>\nbake bread rye\n</goal>" in model.calls[0].prompt
    assert result["warnings"] == [
        f"draft: {5 - len(shown)} of 5 passages, the least similar, were left out to keep within 800 input tokens"
    ]


def test_the_profile_of_a_model_limits_the_prompt(memory: LocalMemory) -> None:
    model = ScriptedModel(cook(), profile={"max_input_tokens": 60})
    result = build_aag(model=model, memory=memory).invoke(
        GOAL, context=AagContext(paper=True, questions=False, critic=False)
    )
    assert "<evidence" not in model.calls[0].prompt
    assert "draft: the prompt is longer than 60 input tokens even without evidence" in result["warnings"]


def test_a_key_in_an_error_is_not_shown(memory: LocalMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PROXY_TOKEN", "very-secret-value")
    failing = [ValueError("denied for very-secret-value and Bearer abc.def")] * 3
    model = ScriptedModel(forever(cook() | {"revise": failing}))
    result = build_aag(model=model, memory=memory).invoke(
        GOAL, context=AagContext(paper=True, retry_wait_s=0)
    )
    assert "very-secret-value" not in repr(result)
    assert "abc.def" not in repr(result)
    assert result["warnings"] == [
        "revise was skipped: the model could not be asked: ValueError: denied for *** and Bearer ***"
    ]


def test_the_critic_is_read_by_its_bullets(ask: Any) -> None:
    listed = f"{CONTENT}\n* Salt the dough."
    model = ScriptedModel(forever(cook(1) | {"critic": [listed, f"All is used.\n\n**{CONTENT}**."]}))
    result = ask(model)
    assert [past["edits"] for past in result["critiques"]] == [["Salt the dough."], []]
    assert result["critiques"][0]["status"] == "verified"
    assert REVISED not in result["answer"]
