"""Replies of the scripted OpenAI-compatible server, and their form on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """The reply to one request; the functions below make the common ones."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent verbatim instead of a completion."""
    hangs: bool = False


def error(status: int, **headers: str) -> Reply:
    """An error in OpenAI's JSON; `retry_after="2"` sends the header Retry-After."""
    problem = {"message": "scripted", "type": "server_error", "param": None, "code": None}
    fields = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return Reply(status=status, headers=fields, body=json.dumps({"error": problem}).encode())


def hang() -> Reply:
    """No reply, until the client leaves or the server closes."""
    return Reply(hangs=True)


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
    written = len(reply.text.split())
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def whole(reply: Reply, body: Body) -> Body:
    """The completion of a request that does not stream."""
    message = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return _completion(body["model"], [choice], usage=_usage(reply, body))


def events(reply: Reply, body: Body) -> Iterator[str]:
    """The events of a stream, word by word."""

    def event(delta: Body | None = None, finish_reason: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        chunk = _completion(body["model"], [] if delta is None else [choice], **more)
        return json.dumps(chunk | {"object": "chat.completion.chunk"})

    yield event({"role": "assistant", "content": ""})
    for word in re.findall(r"\s*\S+\s*$|\s*\S+", reply.text):
        yield event({"content": word})
    yield event({}, "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        yield event(usage=_usage(reply, body))
    yield "[DONE]"
