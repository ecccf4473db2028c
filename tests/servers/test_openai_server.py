"""The scripted server, as langchain-openai sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Event

import httpx
import openai
import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.servers import openai_replies as serve
from tests.servers.openai_replies import Reply
from tests.servers.openai_server import OpenAIServer


def chat(server: OpenAIServer, timeout: float = 30) -> ChatOpenAI:
    return ChatOpenAI(
        model="m",
        base_url=server.base_url,
        api_key=SecretStr("key"),
        max_retries=0,
        timeout=timeout,
        stream_usage=True,
        default_headers={"Connection": "close"},
    )


def merged(chunks: Iterator[AIMessageChunk]) -> AIMessageChunk:
    first, *rest = chunks
    return add_ai_message_chunks(first, *rest)


def test_replies_come_in_order_and_requests_are_kept() -> None:
    with OpenAIServer(["one", Reply("two words", finish_reason="length")]) as server:
        model = chat(server)
        first, second = model.invoke("a b"), model.invoke("c")
    assert (first.content, second.content) == ("one", "two words")
    assert second.response_metadata["finish_reason"] == "length"
    assert first.usage_metadata
    assert first.usage_metadata["input_tokens"] == 2
    assert [body["messages"][0]["content"] for body in server.bodies] == ["a b", "c"]
    assert server.requests[0].headers["authorization"] == "Bearer key"
    assert server.requests[0].at < server.requests[1].at


def test_a_function_answers_from_the_request() -> None:
    with OpenAIServer(lambda body: body["messages"][0]["content"].upper()) as server:
        assert chat(server).invoke("loud").content == "LOUD"


def test_a_stream_brings_words_and_usage() -> None:
    with OpenAIServer(["one two three"]) as server:
        chunks = list(chat(server).stream("hi"))
    whole = merged(iter(chunks))
    assert [chunk.content for chunk in chunks if chunk.content] == ["one", " two", " three"]
    assert whole.usage_metadata
    assert whole.usage_metadata["output_tokens"] == 3
    assert whole.response_metadata["finish_reason"] == "stop"


async def test_it_serves_async_clients() -> None:
    with OpenAIServer(["one two", "three"]) as server:
        model = chat(server)
        assert (await model.ainvoke("hi")).content == "one two"
        assert "".join([str(chunk.content) async for chunk in model.astream("hi")]) == "three"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (408, openai.APIStatusError),
        (409, openai.ConflictError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
def test_errors_carry_status_and_headers(status: int, kind: type[openai.APIStatusError]) -> None:
    with (
        OpenAIServer([serve.error(status, retry_after="7")]) as server,
        pytest.raises(kind) as caught,
    ):
        chat(server).invoke("hi")
    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "7"
    assert len(server.requests) == 1


def test_an_overflow_names_its_code() -> None:
    with (
        OpenAIServer([serve.overflow()]) as server,
        pytest.raises(openai.BadRequestError) as caught,
    ):
        chat(server).invoke("hi")
    assert caught.value.code == "context_length_exceeded"


def test_a_cut_stream_gives_its_words_then_fails() -> None:
    with OpenAIServer([serve.cut()]) as server:
        chunks = (chunk.content for chunk in chat(server).stream("hi"))
        assert [next(chunks), next(chunks), next(chunks)] == ["", "one", " two"]
        with pytest.raises((openai.APIConnectionError, httpx.TransportError)):
            next(chunks)


def test_a_cut_body_fails() -> None:
    with OpenAIServer([serve.cut()]) as server, pytest.raises(openai.APIConnectionError):
        chat(server).invoke("hi")


def test_a_hanging_server_times_out_and_closes_at_once() -> None:
    with OpenAIServer([serve.hang()]) as server, pytest.raises(openai.APITimeoutError):
        chat(server, timeout=0.1).invoke("hi")


def test_a_held_reply_comes_when_released() -> None:
    gate = Event()
    with OpenAIServer([serve.hang(until=gate)]) as server:
        gate.set()
        assert chat(server).invoke("hi").content == "late"


def test_garbage_and_empty_choices() -> None:
    with OpenAIServer([serve.garbage(), serve.empty_choices()]) as server:
        with pytest.raises(json.JSONDecodeError):
            chat(server).invoke("hi")
        with pytest.raises(IndexError):
            chat(server).invoke("hi")


def test_a_refusal_is_not_content() -> None:
    with OpenAIServer([Reply(None, refusal="I won't.")]) as server:
        message = chat(server).invoke("hi")
    assert (message.content, message.additional_kwargs["refusal"]) == ("", "I won't.")


def test_a_script_that_ran_out_says_so() -> None:
    with OpenAIServer([]) as server, pytest.raises(openai.BadRequestError, match="no reply left"):
        chat(server).invoke("hi")
