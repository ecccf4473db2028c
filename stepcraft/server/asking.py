"""Requests that a middleware makes to the server around it, with the credentials of whoever asked.

They pass through the server's own authentication and authorization, so a middleware can reach nothing that its caller
could not.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 4_000_000
"""The most bytes of a request that a middleware reads."""

_OF_THE_BODY = frozenset({b"content-length", b"content-type", b"transfer-encoding", b"accept-encoding"})
_OF_THE_REPLY = frozenset({b"content-length", b"content-type", b"content-encoding"})

OnChunk = Callable[["Reply", bytes], Awaitable[None]]


@dataclass
class Reply:
    """What the server replied."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""

    @property
    def value(self) -> Any:  # noqa: ANN401 - JSON
        """The body as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def start(self) -> Message:
        """The message that begins a reply of JSON under this reply's status and headers, those for browsers included."""
        kept = [(name, value) for name, value in self.headers if name.lower() not in _OF_THE_REPLY]
        headers = [*kept, (b"content-type", b"application/json")]
        return {"type": "http.response.start", "status": self.status, "headers": headers}


def path_of(scope: Scope) -> str:
    """The path of a request below the prefix under which the server is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


async def read_body(receive: Receive) -> bytes | None:
    """The body of a request; None where it is longer than MAX_BODY, or its client is gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body"):
            return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A channel that delivers a body that was read, then what its client does."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


async def ask(
    app: ASGIApp,
    scope: Scope,
    receive: Receive,
    path: str,
    *,
    given: object = None,
    on_chunk: OnChunk | None = None,
) -> Reply:
    """Ask a route of the server: POST with JSON, or GET without it. When the client leaves, the route is told.

    Args:
        app: What the middleware wraps.
        scope: The request that is being answered.
        receive: Its channel, whose body has been read.
        path: The path of the route.
        given: The JSON to send.
        on_chunk: Called with each chunk of the body as it comes.
    """
    body = b"" if given is None else json.dumps(given).encode()
    prefix = str(scope["path"]).removesuffix(path_of(scope))
    headers = [pair for pair in scope["headers"] if pair[0].lower() not in _OF_THE_BODY]
    asked: Scope = {
        **scope,
        "method": "GET" if given is None else "POST",
        "path": prefix + path,
        "raw_path": (prefix + path).encode(),
        "query_string": b"",
        "headers": [
            *headers,
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
    }
    return await collect(app, asked, replayed(body, receive), on_chunk)


async def collect(app: ASGIApp, scope: Scope, receive: Receive, on_chunk: OnChunk | None = None) -> Reply:
    """Let the server reply to a request, and return what it replied."""
    reply = Reply(500, [])

    async def gather(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.status, reply.headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            chunk = message.get("body", b"")
            reply.body += chunk
            if on_chunk:
                await on_chunk(reply, chunk)

    await app(scope, receive, gather)
    return reply


async def send_json(send: Send, reply: Reply, value: object) -> None:
    """Reply with JSON under the status and the headers of a reply."""
    await send(reply.start)
    await send({"type": "http.response.body", "body": json.dumps(value, ensure_ascii=False).encode()})
