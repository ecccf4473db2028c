"""What the outcome of a model call means: faults that pass, errors in a model's own code, interrupts, cancellation."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from stepcraft import NoAnswer, RpgContext, build_rpg
from stepcraft.graphs.baselines import DirectContext, ReactContext, build_direct, build_react
from tests.bridge import GIVEN, planner
from tests.scripted import ScriptedModel, ToolModel, searching
from tests.servers.openai_replies import Reply
from tests.servers.openai_server import OpenAIServer
from tests.shelf import Shelf

QUESTION: Any = {"question": "Who built the bridge?"}


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs a graph either way, without pauses between attempts."""

    def invoke(graph: Any, context: Any = None, **config: Any) -> Any:
        context = context or DirectContext(retry_wait_s=0)
        if request.param == "sync":
            return graph.invoke(QUESTION, config, context=context)
        return asyncio.run(graph.ainvoke(QUESTION, config, context=context))

    return invoke


BUGS = [
    TypeError("unsupported operand"),
    KeyError("OUR_SETTING"),
    IndexError("list index out of range"),
    AttributeError("no attribute 'ask'"),
    NameError("name 'reply' is not defined"),
    NotImplementedError("later"),
    AssertionError("not like this"),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: type(bug).__name__)
def test_an_error_in_the_code_of_a_model_is_raised_at_once(run: Any, bug: Exception) -> None:
    model = ScriptedModel(lambda _node, _prompt: bug)
    with pytest.raises(type(bug)) as caught:
        run(build_direct(model=model))
    assert caught.value is bug
    assert len(model.calls) == 1


def test_an_error_in_the_code_of_a_model_is_raised_by_an_agent(run: Any) -> None:
    model = ToolModel([searching("bridge"), KeyError("OUR_SETTING")])
    with pytest.raises(KeyError, match="OUR_SETTING"):
        run(build_react(model=model, retriever=Shelf()), ReactContext(retry_wait_s=0))
    assert len(model.calls) == 2


def test_a_mistake_in_a_call_of_the_standard_library_is_the_models(run: Any) -> None:
    class Parsing(ScriptedModel):
        def _begin(self, *args: Any) -> Any:
            super()._begin(*args)
            return json.loads(None)  # type: ignore[arg-type]

    model = Parsing(["unused"] * 3)
    with pytest.raises(TypeError, match="the JSON object must be"):
        run(build_direct(model=model))
    assert len(model.calls) == 1


def test_a_model_with_another_signature_is_a_mistake(run: Any) -> None:
    class Odd(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "odd"

        def _generate(self, messages: Any) -> ChatResult:  # type: ignore[override]
            raise AssertionError("never called")

    with pytest.raises(TypeError, match=r"_generate\(\)"):
        run(build_direct(model=Odd()))


def test_a_value_error_costs_the_step(run: Any) -> None:
    model = ScriptedModel([ValueError("boom")] * 3)
    with pytest.raises(NoAnswer, match="ValueError: boom"):
        run(build_direct(model=model))
    assert len(model.calls) == 3


GARBAGE = {
    "half a completion": b'{"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"ind',
    "a list": b"[]",
    "no choices": b'{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}',
    "choices without a message": b'{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{}]}',
    "null": b"null",
    "a text": b'"busy"',
}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE)
def test_an_answer_that_is_no_chat_completion_is_asked_for_again(run: Any, body: bytes) -> None:
    with OpenAIServer([Reply(body=body), "Haldruvin."]) as server:
        model = ChatOpenAI(
            model="served",
            base_url=server.base_url,
            api_key="none",  # type: ignore[arg-type]
            max_retries=0,
            default_headers={"Connection": "close"},
        )
        result = run(build_direct(model=model))
    assert (result["answer"], result["warnings"], result["usage"]["calls"]) == ("Haldruvin.", [], 2)


def test_a_key_that_is_a_placeholder_is_named(run: Any) -> None:
    model = ChatOpenAI(model="served", base_url="http://127.0.0.1:9/v1", api_key="\N{HORIZONTAL ELLIPSIS}")  # type: ignore[arg-type]
    with pytest.raises(NoAnswer, match="its key, or another header, has letters that HTTP does not take"):
        run(build_direct(model=model))


def test_an_interrupt_inside_a_model_pauses_the_run(run: Any) -> None:
    class Asking(ScriptedModel):
        def _begin(self, *args: Any) -> Any:
            call, _ = super()._begin(*args)
            return call, f"{interrupt('who is asking?')} built it."

    model = Asking(["unused"] * 2)
    graph = build_direct(model=model, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    paused = run(graph, **config)
    assert [one.value for one in paused["__interrupt__"]] == ["who is asking?"]
    assert graph.invoke(Command(resume="Haldruvin"), config)["answer"] == "Haldruvin built it."


async def test_a_cancelled_run_ends_at_once() -> None:
    asked = asyncio.Event()

    def script(_node: str, _prompt: str) -> str:
        asked.set()
        return "late"

    model = ScriptedModel(script, latency=60)
    task = asyncio.create_task(build_direct(model=model).ainvoke(QUESTION))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.ended for call in model.calls] == [None]


class Picky(ScriptedModel):
    """A model that takes no temperature, or takes one; both have the same name."""

    model_name: str = "served"
    picky: bool = True

    def _begin(self, messages: Any, manager: Any, kwargs: dict[str, Any]) -> Any:
        call, reply = super()._begin(messages, manager, kwargs)
        if self.picky and "temperature" in kwargs:
            raise Unsupported("temperature is not supported with this model")
        return call, reply


class Unsupported(Exception):
    status_code = 400


def test_a_default_temperature_is_left_out_for_the_model_that_refuses_it_alone() -> None:
    refusing, taking = Picky(planner()), Picky(planner(), picky=False)
    for model in (refusing, taking, refusing):
        assert build_rpg(model=model).invoke({**GIVEN, "kind": "short"})["warnings"] == []
    sent = [call.kwargs.get("temperature") for call in refusing.calls]
    assert sent == [0.0, None, None, None, None]
    assert [call.kwargs.get("temperature") for call in taking.calls] == [0.0, 0.0]


def test_a_temperature_that_was_set_is_not_left_out() -> None:
    model = Picky(planner())
    with pytest.raises(NoAnswer, match="temperature is not supported"):
        build_rpg(model=model).invoke(GIVEN, context=RpgContext(temperature=0.7))


def test_many_event_loops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One model, named by a string, on the event loops of many threads: every call reaches the server, once."""
    failed: list[object] = []

    async def several() -> None:
        graph = build_direct(model="openai:served")
        for result in await asyncio.gather(*(graph.ainvoke(QUESTION) for _ in range(5))):
            again = await graph.ainvoke(QUESTION)
            if [result["answer"], again["answer"], result["usage"]["calls"]] != ["Yes."] * 2 + [1]:
                failed.append(result)

    def work() -> None:
        try:
            asyncio.run(several())
        except Exception as error:
            failed.append(error)

    with OpenAIServer(lambda _: Reply("Yes.", latency=0.005)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        threads = [threading.Thread(target=work) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
    assert len(server.requests) == 120
