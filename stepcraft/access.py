"""Who may do what on a server: the users, their groups, and the rules of the run in progress.

One TOML file, named by STEPCRAFT_ACCESS, lists who may come in (`[users.NAME]` with hashes of API keys, `[jwt]`) and
what each group may do (`[groups.NAME]`). `stepcraft.server.auth` admits callers by it. The nodes of a graph read it again
for the user whom the server passes, so that what a client writes into its request changes nothing.
"""

import logging
import os
import tomllib
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from langchain_core.runnables.config import var_child_runnable_config
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from stepcraft.errors import BadInput
from stepcraft.files import named_path
from stepcraft.policy import Policy
from stepcraft.secrets import excerpt

VARIABLE = "STEPCRAFT_ACCESS"
"""The environment variable that names the file of users and groups; unset for a server that lets everybody in."""

EVERYONE = "everyone"
"""The group that every caller belongs to, where it is defined."""

_ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Signatures by a private key. With a shared secret, whoever can check a token could make one."""

Limit = Annotated[int, Field(ge=1)] | None


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rules(_Table):
    """What a group may do, or a caller by all of its groups. A field that is None says nothing."""

    allow: tuple[str, ...] = ()
    """What its runs may name beside what the deployment allows: entries as in STEPCRAFT_ALLOW."""
    fields: frozenset[str] | None = None
    """The fields of a context that its runs may set; "*" for all."""
    runs_per_minute: Limit = None
    calls_per_day: Limit = None
    tokens_per_day: Limit = None

    @property
    def limits_usage(self) -> bool:
        """Whether runs, calls or tokens are counted."""
        return bool(self.runs_per_minute or self.calls_per_day or self.tokens_per_day)

    def refused_fields(self, names: Iterable[str]) -> list[str]:
        """Those of these fields of a context that may not be set."""
        if self.fields is None or "*" in self.fields:
            return []
        return [name for name in names if name not in self.fields]

    def plus(self, other: Self) -> Self:
        """Both together: what either allows, and the higher limit where both have one."""
        fields = [each.fields for each in (self, other) if each.fields is not None]
        return type(self)(
            allow=(*self.allow, *other.allow),
            fields=frozenset().union(*fields) if fields else None,
            runs_per_minute=_higher(self.runs_per_minute, other.runs_per_minute),
            calls_per_day=_higher(self.calls_per_day, other.calls_per_day),
            tokens_per_day=_higher(self.tokens_per_day, other.tokens_per_day),
        )


class User(_Table):
    """A user of the file."""

    keys: tuple[Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")], ...] = ()
    """Hashes of the API keys, as `stepcraft server key` prints them."""
    groups: tuple[str, ...] = ()


class Jwt(_Table):
    """How the tokens of an identity provider are checked."""

    algorithms: Annotated[tuple[str, ...], Field(min_length=1)]
    """Those that are accepted, whatever a token says."""
    issuer: Annotated[str, Field(min_length=1)]
    audience: Annotated[str, Field(min_length=1)]
    key_file: Path | None = None
    """The public key of the issuer, as PEM."""
    jwks_url: Annotated[str, Field(pattern="^https://")] | None = None
    """Where the issuer publishes its public keys."""
    leeway_s: Annotated[int, Field(ge=0, le=300)] = 30
    """Seconds by which the clocks of the issuer and the server may differ."""
    groups_claim: str = "groups"
    """The claim with the names of the user's groups; names that are not in the file are ignored."""

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if unknown := sorted(set(self.algorithms) - _ALGORITHMS):
            raise ValueError(
                f"the algorithm {unknown[0]!r} is not accepted; there are {', '.join(sorted(_ALGORITHMS))}"
            )
        if (self.key_file is None) == (self.jwks_url is None):
            raise ValueError("name one of key_file and jwks_url")
        if self.key_file is not None and not self.key_file.is_file():
            raise ValueError(f"there is no key_file {self.key_file}")
        return self


class Caller(NamedTuple):
    """Who started a run, as the server has authenticated it."""

    identity: str
    groups: tuple[str, ...] = ()
    """The groups that a token named."""

    def namespace(self, parts: Iterable[str]) -> tuple[str, ...]:
        """A namespace of LangGraph's store within that of the caller, also where it begins with that one already.

        Dots, slashes and percent signs of an identity are written `%2E`, `%2F` and `%25` there.
        """
        own = "".join(f"%{ord(sign):02X}" if sign in "%./" else sign for sign in self.identity)
        named = tuple(parts)
        return named if named[:1] == (own,) else (own, *named)


class Access(_Table):
    """The content of the file."""

    users: dict[Annotated[str, Field(min_length=1, max_length=200)], User] = Field(default_factory=dict)
    groups: dict[str, Rules] = Field(default_factory=dict)
    jwt: Jwt | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.jwt and not any(user.keys for user in self.users.values()):
            raise ValueError(
                "it lets nobody in: give a user a key (`stepcraft server key NAME`) or add [jwt]"
            )
        owners: dict[str, str] = {}
        for name, user in self.users.items():
            if unknown := [group for group in user.groups if group not in self.groups]:
                raise ValueError(f"the user {name!r} is in the group {unknown[0]!r}, which there is not")
            if self.groups and EVERYONE not in self.groups and not user.groups:
                raise ValueError(f"the user {name!r} is in no group; name one, or define [groups.{EVERYONE}]")
            for key in user.keys:
                if owners.setdefault(key, name) != name:
                    raise ValueError(f"{owners[key]!r} and {name!r} have the same key")
        for rules in self.groups.values():
            Policy.of(rules.allow)
        return self

    @property
    def limits_usage(self) -> bool:
        """Whether a group has a limit."""
        return any(rules.limits_usage for rules in self.groups.values())

    def rules(self, caller: Caller) -> Rules:
        """What a caller may do by all of its groups.

        Raises:
            BadInput: the caller is not a user any more, or is in no group of the file.
        """
        user = self.users.get(caller.identity)
        if user is None and self.jwt is None:
            raise BadInput(f"{caller.identity!r} is no user of this server any more")
        named = dict.fromkeys(
            [EVERYONE, *(user.groups if user else ()), *(caller.groups if self.jwt else ())]
        )
        found = [self.groups[name] for name in named if name in self.groups]
        if self.groups and not found:
            raise BadInput(
                f"{caller.identity!r} is in no group that this server knows, so nothing is allowed"
            )
        rules = Rules()
        for each in found:
            rules = rules.plus(each)
        return rules


class _Read(NamedTuple):
    stamp: tuple[int, int, int]
    access: Access


_read: dict[str, _Read] = {}


def access(*, refresh: bool = False) -> Access | None:
    """The users and groups of STEPCRAFT_ACCESS; None where it is not set.

    Args:
        refresh: whether a file that has changed is read again, which blocks. One that cannot be used any more is
            logged, and what was read before holds on.

    Raises:
        BadInput: the file cannot be used.
    """
    where = os.environ.get(VARIABLE, "").strip()
    if not where:
        return None
    read = _read.get(where)
    if read is not None and not refresh:
        return read.access
    path = named_path(where)
    try:
        found = path.stat()
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if read is None or read.stamp != stamp:
            read = _read[where] = _Read(stamp, _parsed(path))
    except (OSError, BadInput) as error:
        reason = (
            str(error)
            if isinstance(error, BadInput)
            else f"{where} ({VARIABLE}) cannot be read: {error.strerror}"
        )
        if read is None:
            raise BadInput(reason) from error
        logging.getLogger(__name__).warning("%s; the rules that were read before hold on", reason)
    return read.access


def _parsed(path: Path) -> Access:
    try:
        return Access.model_validate(tomllib.loads(path.read_text("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} ({VARIABLE}) is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        hidden = first["type"] in ("value_error", "missing") or "keys" in first["loc"]
        said = "" if hidden else f": {excerpt(first['input'])}"
        reason = first["msg"].removeprefix("Value error, ")
        raise BadInput(
            f"{path} ({VARIABLE}) cannot be used: {where + ': ' if where else ''}{reason}{said}"
        ) from None


def caller() -> Caller | None:
    """Who started the run in progress; None where no server has authenticated anybody.

    The server sets the user itself and strips the key from what a client sends. In a run it is an object, which no JSON
    of a client becomes.
    """
    user = _configurable().get(_USER)
    identity = str(getattr(user, "identity", "") or "")
    groups: Any = getattr(user, "groups", ()) or ()
    return Caller(identity, tuple(str(name) for name in groups)) if identity else None


def rules() -> Rules:
    """What the caller of the run in progress may do.

    Without STEPCRAFT_ACCESS, and where the run was not started by a server, nothing is restricted.

    Raises:
        BadInput: the caller may do nothing, or the server runs without the `auth` that the file is for.
    """
    if _USER not in _configurable():
        return _UNRESTRICTED
    known = access()
    if known is None:
        return _UNRESTRICTED
    who = caller()
    if who is None:
        raise BadInput(
            f'{VARIABLE} is set, but this server authenticates nobody: serve with "auth": '
            '{"path": "stepcraft.server.auth:auth"}, as langgraph.auth.json does'
        )
    return known.rules(who)


def check_fields(names: Iterable[str]) -> None:
    """Refuse fields of a context that the caller of the run in progress may not set.

    Raises:
        BadInput: the caller may not set one of them, or may do nothing.
    """
    if refused := [] if _fields_are_checked.get() else rules().refused_fields(names):
        raise BadInput(f"a run of this user may not set {', '.join(refused)} here (fields in {VARIABLE})")


@contextmanager
def fields_checked() -> Generator[None]:
    """Let the run of a subgraph have whatever context its parent derived from one that is checked."""
    token = _fields_are_checked.set(True)
    try:
        yield
    finally:
        _fields_are_checked.reset(token)


_fields_are_checked = ContextVar("fields_are_checked", default=False)


def policy(allow: Policy | None) -> Policy:
    """What the run in progress may name.

    Args:
        allow: the rules that the graph was built with; None for those in STEPCRAFT_ALLOW.

    Raises:
        BadInput: an entry of the rules is not understood, or the caller may do nothing.
    """
    deployed = Policy.of(allow)
    if deployed.trusting:
        return deployed
    who = caller()
    return deployed.for_caller(who.identity if who else "", rules().allow)


_UNRESTRICTED = Rules()


_USER = "langgraph_auth_user"
"""The key of the configuration under which the server passes who started a run."""


def _configurable() -> Mapping[str, Any]:
    """The configuration of the run in progress, read in place: every node asks for it, and `ensure_config` copies."""
    return (var_child_runnable_config.get() or {}).get("configurable") or {}


def _higher(left: int | None, right: int | None) -> int | None:
    limits = [limit for limit in (left, right) if limit is not None]
    return max(limits) if limits else None
