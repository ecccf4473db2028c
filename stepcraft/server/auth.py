"""Who may come in, and what belongs to whom: the `auth` of langgraph.auth.json.

Threads, runs, crons and assistants belong to the `owner` in their metadata, which this module alone
writes. Namespaces of the store begin with the encoded identity. Importing it without a usable
STEPCRAFT_ACCESS raises BadInput, so that no server starts that lets everybody in by mistake.
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
    """Return whose key or token came as `Authorization: Bearer …` or as `X-Api-Key`."""
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
    """Refuse what no other handler is for."""
    return False


@auth.on.threads
async def threads(ctx: Context, value: Value) -> Filter:
    """Threads and their runs belong to their owner."""
    return _owned(ctx, value)


@auth.on.crons
async def crons(ctx: Context, value: Value) -> Filter:
    """Crons belong to their owner. The server itself keeps whose their runs are."""
    return _owned(ctx, value)


@auth.on.assistants
async def assistants(ctx: Context, value: Value) -> Value:
    """Everybody reads the assistants of langgraph.json; others belong to their owner."""
    mine = _owned(ctx, value)
    return {"$or": [mine, {"created_by": "system"}]} if ctx.action in {"read", "search"} else mine


@auth.on.store
async def store(ctx: Context, value: Value) -> bool:
    """Put a namespace below the user, unless it is there already."""
    user = encode_identity(_identity(ctx))
    namespace = tuple(value.get("namespace") or ())
    value["namespace"] = namespace if namespace[:1] == (user,) else (user, *namespace)
    return True


def _identity(ctx: Context) -> str:
    # A user of Studio comes in without a key where disable_studio_auth is not set.
    if is_studio_user(ctx.user):
        raise Auth.exceptions.HTTPException(403, "send a valid key or token")
    return ctx.user.identity


def _owned(ctx: Context, value: Value) -> Filter:
    """Write the owner over whatever a client sent, and return the filter by owner."""
    owner = _identity(ctx)
    if ctx.action in {"create", "create_run"} and value.get("metadata") is None:
        value["metadata"] = {}
    if ctx.action in {"create", "create_run", "update"}:
        # The server stores this very object, and knows its own assistants by `created_by`.
        metadata = value.get("metadata")
        if metadata is not None:
            metadata.pop("created_by", None)
            metadata["owner"] = owner
    return {"owner": owner}
