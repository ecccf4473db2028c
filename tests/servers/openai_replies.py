"""Replies of the scripted OpenAI-compatible server, and their form on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any

Body = dict[str, Any]

_KINDS = {
    401: ("authentication_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", None),
}


@dataclass(frozen=True)
class Reply:
    """The reply to one request; the functions below make the common ones."""

    text: str | None = ""
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent verbatim instead of a completion."""
    cut_after: int | None = None
    """Close the connection after this many words of the text."""
    latency: float = 0.0
    until: Event | None = None
    """Reply only when this event is set, or never if the client disconnects or the server closes first."""


def error(
    status: int, message: str = "scripted", *, code: str | None = None, **headers: str
) -> Reply:
    """An error in OpenAI's JSON; `retry_after="2"` sends the header Retry-After."""
    kind, usual = _KINDS.get(status, ("invalid_request_error", None))
    problem = {"message": message, "type": kind, "param": None, "code": code or usual}
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return Reply(status=status, headers=named, body=json.dumps({"error": problem}).encode())


def overflow() -> Reply:
    """The error for a prompt that exceeds the model's context window."""
    message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    return error(400, message, code="context_length_exceeded")


def hang(until: Event | None = None) -> Reply:
    """No reply before the event is set."""
    return Reply(text="late", until=until or Event())


def cut(text: str = "one two three four", after: int = 2) -> Reply:
    """The connection closes in the middle of the reply."""
    return Reply(text=text, cut_after=after)


def garbage() -> Reply:
    """A body that is not JSON, as a faulty proxy sends it."""
    return Reply(body=b"<html>upstream sent too big header</html>")


def empty_choices() -> Reply:
    """A completion without any choice."""
    return Reply(body=json.dumps(_completion("m", [])).encode())


def tool_call(name: str, **arguments: str) -> Reply:
    """A completion with a tool call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": None}
    used = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return Reply(body=json.dumps(_completion("m", [choice], usage=used)).encode())


def _completion(model: str, choices: list[Body], **more: Any) -> Body:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": choices,
        **more,
    }


def _usage(reply: Reply, body: Body) -> Body:
    """Usage that counts words as tokens."""
    read = sum(len(str(message.get("content")).split()) for message in body["messages"])
    written = len((reply.text or "").split())
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def whole(reply: Reply, body: Body) -> Body:
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": reply.finish_reason,
        "logprobs": None,
    }
    return _completion(body["model"], [choice], usage=_usage(reply, body))


def events(reply: Reply, body: Body) -> Iterator[str]:
    def event(choices: list[Body], **more: Any) -> str:
        chunk = _completion(body["model"], choices, **more)
        return json.dumps(chunk | {"object": "chat.completion.chunk"})

    yield event([_delta({"role": "assistant", "content": ""})])
    for number, piece in enumerate(_deltas(reply)):
        if number == reply.cut_after:
            return
        yield event([_delta(piece)])
    yield event([_delta({}, reply.finish_reason)])
    if (body.get("stream_options") or {}).get("include_usage"):
        yield event([], usage=_usage(reply, body))
    yield "[DONE]"


def _delta(piece: Body, finish_reason: str | None = None) -> Body:
    return {"index": 0, "delta": piece, "finish_reason": finish_reason, "logprobs": None}


def _deltas(reply: Reply) -> Iterator[Body]:
    if reply.reasoning:
        yield {"reasoning_content": reply.reasoning}
    if reply.refusal:
        yield {"refusal": reply.refusal}
    for number, word in enumerate((reply.text or "").split(" ")):
        yield {"content": word if number == 0 else f" {word}"}
