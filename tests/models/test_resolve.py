"""Models by name and as objects: their connections, on every event loop and behind a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI

from stepcraft.errors import ModelUnknown
from stepcraft.models.resolve import ChatModel, aresolve_model, resolve_model
from tests.servers.openai_server import OpenAIServer

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "OPENAI_PROXY")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with OpenAIServer(lambda _body: "Hello.") as server:
        yield server


async def areply(choice: ChatModel | str) -> str:
    models = [await aresolve_model(choice) for _ in range(3)]
    replies = await asyncio.gather(*(model.ainvoke("Hi") for model in models))
    return str(replies[0].text)


@pytest.mark.parametrize(("is_object", "is_async"), [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "all_proxy", "OPENAI_PROXY"])
def test_calls_go_through_the_proxy_of_the_environment(
    variable: str,
    is_object: bool,
    is_async: bool,
    server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, server.base_url.removesuffix("/v1"))
    name = f"{variable}-{is_object}-{is_async}"  # models of a name and clients of a URL are kept
    monkeypatch.setenv("OPENAI_API_BASE", f"http://{name}.invalid/v1")
    model = ChatOpenAI(model=name, max_retries=0) if is_object else f"openai:{name}"
    if is_async:
        assert asyncio.run(areply(model)) == "Hello."
    else:
        assert resolve_model(model).invoke("Hi").text == "Hello."
    assert {body["model"] for body in server.bodies} == {name}


def test_a_proxy_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("OPENAI_PROXY", "127.0.0.1:3128")
    with pytest.raises(ModelUnknown, match="Unknown scheme for proxy URL"):
        resolve_model("openai:behind-a-proxy")


@pytest.mark.parametrize("is_async", [False, True])
def test_no_proxy_is_asked_for_a_host_of_no_proxy(
    is_async: bool, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
    model = f"openai:direct-{is_async}"
    text = asyncio.run(areply(model)) if is_async else resolve_model(model).invoke("Hi").text
    assert text == "Hello."


@pytest.mark.parametrize("retries", [0, 2])
def test_a_model_object_works_on_one_event_loop_after_another(
    retries: int, server: OpenAIServer
) -> None:
    model = ChatOpenAI(model="m", base_url=server.base_url, max_retries=retries)
    other = ChatOpenAI(model="other", base_url=server.base_url, max_retries=retries)
    prefix: Any = RunnableLambda(lambda text: f"Say: {text}")
    wrapped = [model, model.with_fallbacks([other]), model.with_retry(), prefix | model]
    for each in wrapped:
        assert [asyncio.run(areply(each)) for _ in range(4)] == ["Hello."] * 4


async def test_models_of_an_event_loop_share_its_connections(server: OpenAIServer) -> None:
    models = [ChatOpenAI(model="m", base_url=server.base_url) for _ in range(2)]
    copies: list[Any] = [await aresolve_model(model) for model in [*models, "openai:m"]]
    assert len({copy.root_async_client._client for copy in copies}) == 1


async def test_an_async_client_of_the_owner_is_kept(server: OpenAIServer) -> None:
    async with httpx.AsyncClient() as client:
        model = ChatOpenAI(model="m", base_url=server.base_url, http_async_client=client)
        assert await aresolve_model(model) is model


def test_a_model_of_anthropic_has_connections_of_its_own_on_each_event_loop() -> None:
    model: Any = pytest.importorskip("langchain_anthropic").ChatAnthropic(model="m", api_key="none")

    async def clients() -> list[Any]:
        models: list[Any] = [await aresolve_model(model) for _ in range(2)]
        return [each._async_client._client for each in models]

    first, second = asyncio.run(clients()), asyncio.run(clients())
    assert first[0] is first[1] is not second[0]
