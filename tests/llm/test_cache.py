"""Cached replies: for which model they hold, and what is stored."""

import asyncio
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langgraph.cache.memory import InMemoryCache

from stepcraft.graphs.baselines import build_direct, build_react
from stepcraft.models.resolve import model_identity
from tests.scripted import ScriptedModel, ToolModel, searching
from tests.servers.openai_server import OpenAIServer
from tests.shelf import Shelf

QUESTION: Any = {"question": "Who built the bridge?"}


def chat(url: str = "http://127.0.0.1:9/v1", **options: Any) -> ChatOpenAI:
    settings: dict[str, Any] = {"model": "served", "api_key": "sk-local-0123456789", "max_retries": 0}
    return ChatOpenAI(base_url=url, default_headers={"Connection": "close"}, **settings | options)


def answer(model: BaseChatModel | str, cache: InMemoryCache) -> tuple[str, int]:
    """The answer of a run, and how many calls it took."""
    result = build_direct(model=model, cache=cache).invoke(QUESTION)
    return result["answer"], result["usage"]["calls"]


def test_a_reply_of_one_model_object_is_not_given_for_another() -> None:
    cache = InMemoryCache()
    first, second = ScriptedModel(["One."]), ScriptedModel(["Two."])
    assert [answer(model, cache) for model in (first, second, first)] == [
        ("One.", 1),
        ("Two.", 1),
        ("One.", 0),
    ]


def test_a_reply_of_one_server_is_not_given_for_another() -> None:
    cache = InMemoryCache()
    with OpenAIServer(["One."]) as one, OpenAIServer(["Two."]) as two:
        assert answer(chat(one.base_url), cache) == ("One.", 1)
        assert answer(chat(two.base_url), cache) == ("Two.", 1)
        assert answer(chat(one.base_url), cache) == ("One.", 0), "another object of the same settings"


def test_a_reply_at_one_temperature_is_not_given_at_another() -> None:
    cache = InMemoryCache()
    with OpenAIServer(["Cold.", "Warm."]) as server:
        assert answer(chat(server.base_url, temperature=0), cache) == ("Cold.", 1)
        assert answer(chat(server.base_url, temperature=1), cache) == ("Warm.", 1)
        assert answer(chat(server.base_url, temperature=0), cache) == ("Cold.", 0)


@pytest.mark.parametrize(
    "options",
    [
        {"model": "other"},
        {"base_url": "http://127.0.0.1:10/v1"},
        {"temperature": 0.5},
        {"top_p": 0.5},
        {"max_tokens": 5},
        {"reasoning_effort": "high"},
        {"model_kwargs": {"response_format": {"type": "json_object"}}},
        {"default_headers": {"X-Route": "b"}},
        {"extra_body": {"guided": True}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_tells_two_models_apart(options: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"model": "served", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-a"}
    assert model_identity(ChatOpenAI(**settings | options)) != model_identity(ChatOpenAI(**settings))


def test_keys_do_not_identify_a_model() -> None:
    assert model_identity(chat(api_key="sk-local-1111111111")) == model_identity(chat())
    keys = [{"Authorization": f"Bearer {key}", "api-key": key} for key in ("0123456789", "9876543210")]
    one, two = (
        ChatOpenAI(model="served", api_key="none", default_headers=headers)  # type: ignore[arg-type]
        for headers in keys
    )
    assert model_identity(one) == model_identity(two)


def test_a_name_at_another_address_is_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is read once in a process, so two names stand for two processes."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    cache = InMemoryCache()
    with OpenAIServer(["One."]) as one, OpenAIServer(["Two."]) as two:
        monkeypatch.setenv("OPENAI_BASE_URL", one.base_url)
        assert answer("openai:cache-one", cache) == ("One.", 1)
        assert answer("openai:cache-one", cache) == ("One.", 0)
        monkeypatch.setenv("OPENAI_BASE_URL", two.base_url)
        assert answer("openai:cache-two", cache) == ("Two.", 1)


def test_a_name_that_is_not_built_yet_is_no_other_model() -> None:
    """Its address is not known, and finding out would take as long as building it."""
    assert model_identity("openai:never-built") != model_identity("openai:never-built")


def test_a_model_that_names_its_parameters_is_identified_by_them() -> None:
    class Described(ScriptedModel):
        @property
        def _identifying_params(self) -> dict[str, Any]:
            return {"voice": "low"}

    cache = InMemoryCache()
    assert answer(Described(["One."]), cache) == ("One.", 1)
    assert answer(Described(["Two."]), cache) == ("One.", 0)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_react_with_a_cache(kind: str) -> None:
    """The agent ends without an answer, so the cached node writes one from what was found."""

    def run() -> Any:
        return graph.invoke(QUESTION) if kind == "sync" else asyncio.run(graph.ainvoke(QUESTION))

    replies = {"model": [searching("bridge"), "", searching("bridge"), ""], "answer": ["Haldruvin."]}
    model = ToolModel(replies)
    graph = build_react(model=model, retriever=Shelf(), cache=InMemoryCache())
    first = run()
    assert (first["answer"], first["usage"]["calls"]) == ("Haldruvin.", 3)
    assert model.nodes == ["model", "model", "answer"]
    model.calls.clear()
    again = run()
    assert (again["answer"], again["usage"]["nodes"].keys()) == ("Haldruvin.", {"agent"})


def test_react_with_a_cache_and_a_model_without_tools() -> None:
    model = ScriptedModel(["From one search."])
    graph = build_react(model=model, retriever=Shelf(), cache=InMemoryCache())
    assert [graph.invoke(QUESTION)["usage"]["calls"] for _ in range(2)] == [1, 0]
