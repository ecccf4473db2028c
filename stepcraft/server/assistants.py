"""Assistants whose context cannot be used are refused when they are made, not when they are first asked."""

import json
from collections.abc import Mapping
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput
from stepcraft.server.asking import Reply, ask, path_of, read_body, replayed, send_json


class CheckedAssistants:
    """Checks the context of an assistant of this package's graphs: unknown fields, wrong types, values out of bounds.

    The server keeps any context and drops the fields that a graph does not have, so a misspelt setting would have no
    effect and no error. Contexts of other graphs pass unchecked.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request with 422 and a sentence, or hand it to the server."""
        if scope["type"] != "http" or (path := _assistant(scope)) is None:
            await self._app(scope, receive, send)
            return
        body = await read_body(receive)
        if body is None:
            await send_json(send, Reply(413, []), {"detail": "the request is too long"})
            return
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            given = None
        if isinstance(given, dict) and (context := cast("dict[str, Any]", given).get("context")):
            if not path:  # another assistant of the graph has the same schemas
                search = {"graph_id": cast("dict[str, Any]", given).get("graph_id"), "limit": 1}
                found = await ask(self._app, scope, receive, "/assistants/search", given=search)
                ids = [one["assistant_id"] for one in found.value] if found.status == 200 else []
                path = f"/assistants/{ids[0]}" if ids else path
            schemas = await ask(self._app, scope, receive, f"{path}/schemas") if path else None
            if schemas and schemas.status == 200 and (refusal := _refusal(schemas.value, context)):
                await send_json(send, Reply(422, schemas.headers), {"detail": refusal})
                return
        await self._app(scope, replayed(body, receive), send)


def _assistant(scope: Scope) -> str | None:
    """The path of the assistant that a request changes, "" of one that it makes, None of any other request."""
    path, method = path_of(scope), scope["method"]
    if method == "POST" and path == "/assistants":
        return ""
    return path if method == "PATCH" and path.startswith("/assistants/") and path.count("/") == 2 else None


def _refusal(schemas: Mapping[str, Any], context: object) -> str:
    """Why a context cannot be used; "" where it can, or belongs to no graph of this package."""
    title = (schemas.get("context_schema") or {}).get("title")
    known = _contexts(Context).get(str(title))
    if known is None:
        return ""
    if not isinstance(context, Mapping):
        return f"a context maps the names of settings to values; {type(context).__name__} does not"
    try:
        known(**cast("Mapping[str, Any]", context))
    except BadInput as error:
        return str(error)
    return ""


def _contexts(base: type[Context]) -> dict[str, type[Context]]:
    """The classes of contexts that are loaded, by name: those of the graphs that the server serves are among them."""
    found: dict[str, type[Context]] = {}
    for kind in base.__subclasses__():
        found |= {kind.__name__: kind, **_contexts(kind)}
    return found
