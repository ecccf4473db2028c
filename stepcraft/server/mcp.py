"""MCP for models: what a tool call returns, what an error says, and which inputs a model is shown.

The server's own `/mcp` makes every assistant a tool. It replies with Python's `repr` of the output, shows the class of an
error without its message, and offers the inputs that only a program can fill. This middleware runs the calls of tools
through the server's `/runs/wait` instead, as their caller, and leaves all else of the protocol to the server.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from stepcraft.schema import FOR_PROGRAMS
from stepcraft.server.asking import Reply, ask, collect, path_of, read_body, replayed, send_json

_MOST_ASSISTANTS = 1000
"""As many as the server's own look-up reads."""

Json = dict[str, Any]


class McpTools:
    """Answers `tools/call` with JSON, and takes what is for programs out of `tools/list`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it to the server."""
        if scope["type"] != "http" or scope["method"] != "POST" or path_of(scope) != "/mcp":
            await self._app(scope, receive, send)
            return
        body = await read_body(receive)
        if body is None:
            await send_json(send, Reply(413, []), {"error": "the request is too long"})
            return
        message, rest = _message(body), replayed(body, receive)
        method = message.get("method") if message.get("id") is not None else None
        if method == "tools/list":
            await self._list(scope, rest, send)
        elif method != "tools/call" or not await self._call(scope, receive, send, message):
            await self._app(scope, rest, send)

    async def _list(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = await collect(self._app, scope, receive)
        listed = reply.value
        if isinstance(listed, dict):
            for tool in cast("Json", listed).get("result", {}).get("tools", ()):
                _leave_to_programs(tool.get("inputSchema", {}))
        await send_json(send, reply, cast("object", listed))

    async def _call(self, scope: Scope, receive: Receive, send: Send, message: Json) -> bool:
        """Run the assistant of a tool and reply; False for a tool that the server is to refuse."""
        params = message.get("params")
        named = cast("Json", params).get("name") if isinstance(params, dict) else None
        search = {"limit": _MOST_ASSISTANTS}
        found = await ask(self._app, scope, receive, "/assistants/search", given=search)
        if found.status != 200:  # the caller is not known, or may not look
            await send_json(send, found, found.value)
            return True
        ids = [one["assistant_id"] for one in found.value if _tool_name(one["name"]) == named]
        if len(ids) != 1:
            return False
        given: Json = {"assistant_id": ids[0], "on_disconnect": "cancel"}
        given["input"] = cast("Json", params).get("arguments") or {}
        if context := cast("Json", params).get("context"):
            given["context"] = context
        await self._run(scope, receive, send, message["id"], given)
        return True

    async def _run(self, scope: Scope, receive: Receive, send: Send, number: object, given: Json) -> None:
        """Wait for a run. The blanks that the server sends meanwhile are passed on: they keep the connection open."""
        begun = False

        async def pass_on(reply: Reply, chunk: bytes) -> None:
            nonlocal begun
            if reply.status != 200 or not chunk or reply.body.strip():
                return
            if not begun:
                await send(reply.start)
                begun = True
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

        reply = await ask(self._app, scope, receive, "/runs/wait", given=given, on_chunk=pass_on)
        result = _result(reply.value) if reply.status == 200 else _failure(_detail(reply))
        if not begun:
            await send(Reply(200, reply.headers).start)
        answer = {"jsonrpc": "2.0", "id": number, "result": result}
        await send({"type": "http.response.body", "body": json.dumps(answer, ensure_ascii=False).encode()})


def _message(body: bytes) -> Json:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("Json", message) if isinstance(message, dict) else {}


def _tool_name(assistant: str) -> str:
    """The name of an assistant as a tool, by the rule of the server: the characters that MCP allows."""
    return re.sub(r"[^a-zA-Z0-9_\-.]", "", re.sub(r"\s+", "_", assistant.strip()))[:128]


def _leave_to_programs(schema: Json) -> None:
    """Take the inputs out that a model would have to invent, and the definitions that nothing refers to any more."""
    fields = cast("Json", schema.get("properties", {}))
    for name in [name for name, field in fields.items() if isinstance(field, dict) and FOR_PROGRAMS in field]:
        del fields[name]
    if "$ref" not in json.dumps(fields):
        schema.pop("$defs", None)


def _result(value: object) -> Json:
    """The output of a run for a model: the answer, what it rests on and what a reader should know; of others all."""
    if not isinstance(value, dict):
        return {"content": [_text(value)]}
    output = cast("Json", value)
    if isinstance(error := output.get("__error__"), dict):
        problem = cast("Mapping[str, object]", error)
        return _failure(str(problem.get("message") or problem.get("error")))
    if isinstance(output.get("answer"), str) and isinstance(evidence := output.get("evidence"), list):
        passages = cast("list[Json]", evidence)
        output = {
            "answer": output["answer"],
            "sources": [
                {key: passage.get(key, "") for key in ("title", "source", "id")} for passage in passages
            ],
            "warnings": output.get("warnings", []),
            "usage": output.get("usage", {}),
        }
    return {"content": [_text(output)], "structuredContent": output, "isError": False}


def _failure(sentence: str) -> Json:
    return {"content": [{"type": "text", "text": sentence}], "isError": True}


def _text(value: object) -> Json:
    return {"type": "text", "text": json.dumps(value, ensure_ascii=False)}


def _detail(reply: Reply) -> str:
    """Why the server refused a run, in its words."""
    value = reply.value
    detail = cast("Json", value).get("detail") if isinstance(value, dict) else None
    return str(detail or reply.body.decode(errors="replace") or f"the server replied with {reply.status}")
