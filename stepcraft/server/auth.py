"""Who may come in, and what belongs to whom: the `auth` of a LangGraph server.

langgraph.auth.json is langgraph.json with this `auth`. There are two files because a server with an `auth` is another
server than one without: on LangSmith, for example, an `auth` replaces the check of LangSmith's keys, so one that let
everybody in until it is configured would open the deployment. Here a server with this `auth` and without
STEPCRAFT_ACCESS does not start, and graphs refuse to run where STEPCRAFT_ACCESS is set and nobody is authenticated.

Threads, runs, crons and assistants belong to the user in their metadata's `owner`, which only this module writes.
Namespaces of the store begin with their user. What no handler is for is refused.
"""

import asyncio
import logging
import os
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import Any

from langgraph_sdk import Auth
from langgraph_sdk.auth import is_studio_user

from stepcraft.access import VARIABLE, Access, Caller, Rules
from stepcraft.access import access as current_access
from stepcraft.errors import BadInput, LimitsFailure
from stepcraft.graphs.registry import CHAT, GRAPHS, context_of
from stepcraft.limits import VARIABLE as LIMITS_VARIABLE
from stepcraft.limits import allowance_of, open_counters
from stepcraft.server.credentials import authenticated

auth = Auth()
"""For `auth.path` in langgraph.json: "stepcraft.server.auth:auth"."""

_OWNER = "owner"
_SYSTEM = "created_by"
"""The metadata by which the server knows the assistants of langgraph.json."""

_log = logging.getLogger(__name__)


@auth.authenticate
async def authenticate(authorization: str | None, headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    """The user whose key or token comes as `Authorization: Bearer …` or as `X-Api-Key`."""
    scheme, _, token = (authorization or "").partition(" ")
    shown = (
        token.strip()
        if scheme.lower() == "bearer"
        else headers.get(b"x-api-key", b"").decode("latin-1").strip()
    )
    try:
        who = await asyncio.to_thread(_authenticated, shown)
    except BadInput as failure:
        _log.exception("nobody can be authenticated")
        raise Auth.exceptions.HTTPException(
            status_code=503,
            detail="nobody can be authenticated at the moment; the log of the server says why",
        ) from failure
    if who is None:
        raise Auth.exceptions.HTTPException(
            status_code=401,
            detail="send a valid key or token as Authorization: Bearer, or a key as X-Api-Key",
        )
    return _as_user(who)


def _authenticated(shown: str) -> Caller | None:
    return authenticated(_access(refresh=True), shown)


class _User(Auth.types.MinimalUserDict):
    groups: list[str]


def _as_user(who: Caller) -> _User:
    return {"identity": who.identity, "display_name": who.identity, "groups": list(who.groups)}


@auth.on
async def refuse(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ANN401, ARG001 - the signature of handlers
    """What no other handler is for."""
    return False


@auth.on.threads
async def threads(ctx: Auth.types.AuthContext, value: Any) -> Auth.types.FilterType:  # noqa: ANN401 - differs by action
    """Threads and their runs belong to who made them; a run is counted, and sets what its user may set."""
    who, rules = _caller(ctx)
    if ctx.action == "create_run":
        kwargs = value.get("kwargs") or {}
        _check_fields(rules, kwargs.get("context"), (kwargs.get("config") or {}).get("configurable"))
        await _count_run(who, rules)
    return _own(ctx, who, value)


@auth.on.assistants
async def assistants(ctx: Auth.types.AuthContext, value: Any) -> Any:  # noqa: ANN401 - differs by action; the type of filters lacks $or
    """Everybody reads the assistants of langgraph.json; others belong to who made them."""
    who, rules = _caller(ctx)
    if ctx.action in {"read", "search"}:
        return {"$or": [{_OWNER: who.identity}, {_SYSTEM: "system"}]}
    _check_fields(rules, value.get("context"), (value.get("config") or {}).get("configurable"))
    return _own(ctx, who, value)


@auth.on.crons
async def crons(ctx: Auth.types.AuthContext, value: Any) -> Auth.types.FilterType:  # noqa: ANN401 - differs by action
    """Crons belong to who made them, and their runs have the groups that the user had."""
    who, rules = _caller(ctx)
    if isinstance(payload := value.get("payload"), dict):
        config = payload.get("config") or {}
        configurable = config.get("configurable") or {}
        _check_fields(rules, payload.get("context"), configurable)
        # An update without a config leaves the one that the cron has, its user included.
        if ctx.action == "create" or "config" in payload:
            configurable = {**configurable, "langgraph_auth_user": _as_user(who)}
            payload["config"] = {**config, "configurable": configurable}
        if isinstance(metadata := payload.get("metadata"), dict):
            _mark(metadata, who)
    return _own(ctx, who, value)


@auth.on.store
async def store(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ANN401 - differs by action
    """Each user has a namespace of its own, and sees no other."""
    who, _ = _caller(ctx)
    value["namespace"] = who.namespace(value.get("namespace") or ())
    return True


def _caller(ctx: Auth.types.AuthContext) -> tuple[Caller, Rules]:
    """Who asks, and what it may do; 403 for whoever this module did not authenticate."""
    groups: Any = getattr(ctx.user, "groups", ()) or ()
    who = Caller(ctx.user.identity, tuple(str(name) for name in groups))
    if not who.identity or is_studio_user(ctx.user):
        raise Auth.exceptions.HTTPException(status_code=403, detail="send a valid key or token")
    try:
        return who, _access().rules(who)
    except BadInput as refusal:
        raise Auth.exceptions.HTTPException(status_code=403, detail=str(refusal)) from refusal


def _own(ctx: Auth.types.AuthContext, who: Caller, value: Any) -> Auth.types.FilterType:  # noqa: ANN401 - differs by action
    """Write the owner into the metadata, whatever a client put there, and give the filter by it."""
    if ctx.action in {"create", "create_run"} and value.get("metadata") is None:
        value["metadata"] = {}
    if ctx.action in {"create", "create_run", "update"} and isinstance(
        metadata := value.get("metadata"), dict
    ):
        _mark(metadata, who)
    return {_OWNER: who.identity}


def _mark(metadata: dict[str, Any], who: Caller) -> None:
    metadata.pop(_SYSTEM, None)
    metadata[_OWNER] = who.identity


async def _count_run(who: Caller, rules: Rules) -> None:
    """Count a run that begins; 429 where a limit of its user is reached."""
    if not rules.limits_usage:
        return
    try:
        allowed = await asyncio.to_thread(partial(allowance_of, who.identity, rules))
        refusal = await asyncio.to_thread(allowed.take_run) if allowed else None
    except (LimitsFailure, BadInput) as failure:
        _log.exception("runs cannot be counted")
        raise Auth.exceptions.HTTPException(
            status_code=503, detail="runs cannot be counted at the moment; the log of the server says why"
        ) from failure
    if refusal:
        raise Auth.exceptions.HTTPException(
            status_code=429, detail=refusal.sentence, headers={"Retry-After": str(refusal.seconds)}
        )


def _check_fields(rules: Rules, *contexts: Any) -> None:  # noqa: ANN401 - JSON of a client
    """Refuse (403) a context that sets what the caller may not set; its graph would refuse it again."""
    known = _defaults()
    for context in contexts:
        if not isinstance(context, dict):
            continue
        given = [name for name, value in context.items() if name in known and value not in known[name]]
        if refused := rules.refused_fields(given):
            raise Auth.exceptions.HTTPException(
                status_code=403,
                detail=f"you may not set {', '.join(refused)} here; you may set {', '.join(sorted(rules.fields or ()))}",
            )


@lru_cache(maxsize=1)
def _defaults() -> dict[str, list[Any]]:
    """The fields of the contexts of all graphs, with their defaults, which a client may send."""
    found: dict[str, list[Any]] = {}
    for name in (*GRAPHS, *CHAT):
        for field, value in vars(context_of(name)()).items():
            found.setdefault(field, []).append(value)
    return found


def _access(*, refresh: bool = False) -> Access:
    known = current_access(refresh=refresh)
    if known is None:
        raise BadInput(
            f"the server has stepcraft.server.auth as its auth, but {VARIABLE} is not set: name the file of its users, or "
            "serve langgraph.json, which has no auth"
        )
    return known


def _check_configuration() -> None:
    """Refuse to start with half a configuration.

    Raises:
        BadInput: something is missing; the message says what.
        LimitsFailure: the limits cannot be counted.
    """
    known, limits = _access(refresh=True), os.environ.get(LIMITS_VARIABLE, "").strip()
    if known.limits_usage and not limits:
        allowance_of("", Rules(runs_per_minute=1))
    if known.jwt and find_spec("jwt") is None:
        raise BadInput('[jwt] needs a package: pip install "stepcraft[server]"')
    if limits:
        open_counters(limits)
    _defaults()


_check_configuration()
