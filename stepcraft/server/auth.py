"""Authentication and ownership: the `auth` of langgraph.auth.json.

Threads, runs, crons and assistants belong to the `owner` in their metadata, which only this module
writes. Store namespaces begin with the encoded identity. Importing this module without a usable
STEPCRAFT_ACCESS raises BadInput, so that a server cannot start and let everybody in by mistake.
"""

import asyncio
import logging
from typing import Any

from langgraph_sdk import Auth
from langgraph_sdk.auth import is_studio_user

from stepcraft.access import encode_identity
from stepcraft.errors import BadInput
from stepcraft.server.users import read_users

Context = Auth.types.AuthContext
Filter = Auth.types.FilterType
Value = dict[str, Any]

auth = Auth()
read_users()

_log = logging.getLogger(__name__)


@auth.authenticate
async def authenticate(
    authorization: str | None, headers: dict[bytes, bytes]
) -> Auth.types.MinimalUserDict:
    """Identify the user by the key or token in `Authorization: Bearer …` or in `X-Api-Key`."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer":
        token = headers.get(b"x-api-key", b"").decode("latin-1")
    try:
        identity = await asyncio.to_thread(_identify, token.strip())
    except BadInput as error:
        _log.exception("nobody can be authenticated")
        raise Auth.exceptions.HTTPException(
            503, "nobody can be authenticated at the moment; the log of the server says why"
        ) from error
    if identity is None:
        raise Auth.exceptions.HTTPException(
            401, "send a valid key or token as Authorization: Bearer, or a key as X-Api-Key"
        )
    return {"identity": identity}


def _identify(credential: str) -> str | None:
    return read_users().identify(credential)


@auth.on
async def refuse(ctx: Context, value: Value) -> bool:  # noqa: ARG001 - passed by name
    """Refuse anything that no other handler covers."""
    return False


@auth.on.threads
async def threads(ctx: Context, value: Value) -> Filter:
    """Restrict threads and their runs to their owner."""
    return _owned(ctx, value)


@auth.on.crons
async def crons(ctx: Context, value: Value) -> Filter:
    """Restrict crons to their owner. The server itself tracks the owner of their runs."""
    return _owned(ctx, value)


@auth.on.assistants
async def assistants(ctx: Context, value: Value) -> Value:
    """Let everybody read the assistants in langgraph.json; others belong to their owner."""
    mine = _owned(ctx, value)
    return {"$or": [mine, {"created_by": "system"}]} if ctx.action in {"read", "search"} else mine


@auth.on.store
async def store(ctx: Context, value: Value) -> bool:
    """Prefix a namespace with the user's id, unless it is already there."""
    user = encode_identity(_identity(ctx))
    namespace = tuple(value.get("namespace") or ())
    value["namespace"] = namespace if namespace[:1] == (user,) else (user, *namespace)
    return True


def _identity(ctx: Context) -> str:
    # A Studio user is let in without a key unless disable_studio_auth is set.
    if is_studio_user(ctx.user):
        raise Auth.exceptions.HTTPException(403, "send a valid key or token")
    return ctx.user.identity


def _owned(ctx: Context, value: Value) -> Filter:
    """Set the owner, overriding anything a client sent, and return a filter for that owner."""
    owner = _identity(ctx)
    if ctx.action in {"create", "create_run"} and value.get("metadata") is None:
        value["metadata"] = {}
    if ctx.action in {"create", "create_run", "update"}:
        # The server stores this very object, and recognises its own assistants by `created_by`.
        metadata = value.get("metadata")
        if metadata is not None:
            metadata.pop("created_by", None)
            metadata["owner"] = owner
    return {"owner": owner}
