"""Identify the user who started the current run, and fill in their store namespaces."""

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables.config import ensure_config

from stepcraft.errors import BadInput

_USER = "langgraph_auth_user"
"""The server sets this key in the `configurable` of every run and strips it from requests. Its
value is an object, which a client cannot send as JSON, or None if nobody is authenticated.
"""

_FIELD = re.compile(r"\{(\w+)\}")
_YES = {"1", "true", "yes", "on"}


def caller() -> str | None:
    """Return the authenticated identity of the current run, or None outside a server."""
    return _identity(_configurable(ensure_config()))


def encode_identity(identity: str) -> str:
    """Encode an identity as a unique string of at most 64 letters, digits, `-` and `_`.

    Each byte of any other character, and `_` itself, becomes `_` and two hexadecimal digits. A
    result over 64 characters becomes `_h` and a hash, which is unambiguous because no escape begins
    with `_h`. The store rejects dots in namespaces, and Weaviate only accepts tenant names in this
    form.
    """
    encoded = re.sub(
        r"[^A-Za-z0-9-]",
        lambda match: "".join(f"_{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass")),
        identity,
    )
    if len(encoded) <= 64:
        return encoded
    return f"_h{hashlib.sha256(encoded.encode()).hexdigest()[:62]}"


def fill_namespace(
    template: tuple[str, ...], config: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Replace `{user}` and other `{field}` parts in a store namespace.

    On a server, only `{user}` can be filled in, with the authenticated identity. Elsewhere, the
    values come from `config["configurable"]` or from the config of the current run.

    Raises:
        BadInput: A part cannot be filled; the message says how to set its field.
    """
    running = _configurable(ensure_config())
    fields = {**running, **_configurable(config)}
    if _USER in running:  # a config passed in a server's run does not change who started it
        fields[_USER] = running[_USER]
    return tuple(_filled(part, fields) for part in template)


def _filled(part: str, fields: Mapping[str, Any]) -> str:
    match = _FIELD.fullmatch(part)
    if match is None:
        if "{" in part or "}" in part:
            raise BadInput(f"{part!r} is no part of a namespace; write a field as '{{user}}' alone")
        return part
    name = match[1]
    if _USER not in fields:
        value = fields.get(name)
        how = f'pass config={{"configurable": {{"{name}": "…"}}}} with a text that is not empty'
    elif name == "user":
        value = _identity(fields)
        how = "serve with users, as langgraph.auth.json does"
    else:
        value, how = None, "only {user} is filled on a server"
    if not isinstance(value, str) or not value:
        raise BadInput(f"the part {part} of a namespace cannot be filled: {how}")
    return encode_identity(value)


def _configurable(config: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (config or {}).get("configurable") or {}


def _identity(configurable: Mapping[str, Any]) -> str | None:
    identity = getattr(configurable.get(_USER), "identity", None)
    return str(identity) if identity else None


def check_may_remember() -> None:
    """Refuse a server run that writes to a memory, unless the deployment allows it.

    Raises:
        BadInput: The run is on a server, and STEPCRAFT_REMEMBER is not 1 (or true, yes, on).
    """
    is_allowed = os.environ.get("STEPCRAFT_REMEMBER", "").strip().lower() in _YES
    if _USER in _configurable(ensure_config()) and not is_allowed:
        raise BadInput(
            "a run may not write into a memory here: remember=True takes STEPCRAFT_REMEMBER=1"
        )
