"""What clients of Weaviate have in common, sync or async: how they are made, and what their failures mean."""

import time
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import grpc
import httpx
from weaviate.auth import Auth
from weaviate.config import AdditionalConfig, Timeout
from weaviate.exceptions import UnexpectedStatusCodeError, WeaviateBaseError

from stepcraft.errors import MemoryFailure, without_secrets
from stepcraft.memory.weaviate.probe import refused
from stepcraft.memory.weaviate.url import Place, Server, api_key

PATIENCE_S = 1.5
"""After how many seconds of a call the server is asked whether it is still there."""


class Away(MemoryFailure):
    """The server cannot be reached now, or does not know its collections yet; it may come back."""


WAKING_S = 4.0
"""How long a call waits for a server that was just started to know its collections, in seconds."""

PAUSE_S = 0.1
"""Between two looks at it."""

FAULTS = (WeaviateBaseError, httpx.HTTPError, grpc.RpcError, ValueError, OSError)
"""What clients raise, with an answer or without."""

_TIMEOUT = Timeout(init=2, query=30, insert=120)
_Client = TypeVar("_Client")


@dataclass(frozen=True)
class Held(Generic[_Client]):
    """A client that is connected, to which server, its view of the collection, and since when."""

    client: _Client
    server: Server
    objects: Any
    since: float = field(default_factory=time.monotonic)


def settings(server: Server) -> dict[str, Any]:
    """What a client is made with."""
    return {
        "http_host": server.host,
        "http_port": server.port,
        "http_secure": server.tls,
        "grpc_host": server.grpc_host,
        "grpc_port": server.grpc_port,
        "grpc_secure": server.tls,
        "auth_credentials": Auth.api_key(api_key()) if api_key() else None,
        "additional_config": AdditionalConfig(timeout=_TIMEOUT),
        "skip_init_checks": True,
    }


def objects_of(client: Any, place: Place) -> Any:  # noqa: ANN401 - the sync client or the async one
    """The collection. What is handed to it is of our own making, so that the client need not validate it."""
    objects = client.collections.use(place.collection, skip_argument_validation=True)
    return objects.with_tenant(place.tenant) if place.tenant else objects


def lost(error: Exception) -> bool:
    """Whether the connection failed, and not what was asked for."""
    text = str(error).lower()
    return isinstance(error, httpx.TransportError | OSError) or any(
        sign in text for sign in ("closed", "unavailable", "cancelled", "connection", "socket")
    )


def waking(error: Exception, since: float) -> bool:
    """Whether the server has just been started and does not know its collections yet, and is worth waiting for."""
    return time.monotonic() - since < WAKING_S and _unknown(error)


def _unknown(error: Exception) -> bool:
    return any(sign in str(error) for sign in ("non-existing index", "could not find class"))


def failure(name: str, error: Exception, reason: str = "") -> MemoryFailure:
    """What to raise for an error of a client.

    Args:
        name: what the memory is called in messages.
        error: what the client raised.
        reason: why the server cannot be used; "" if it can.
    """
    if reason:
        return gone(name, reason)
    if isinstance(error, UnexpectedStatusCodeError) and error.status_code in (401, 403, 7, 16):
        return MemoryFailure(f"{name} {refused()}")
    if _unknown(error):
        return Away(
            f"{name}: the server does not know the collection; one that was just started may still be loading it, "
            "so try again in a moment, or see whether the collection was dropped"
        )
    what = " ".join(without_secrets(str(error)).split())[:300]
    kind = Away if lost(error) else MemoryFailure
    return kind(f"{name} failed: {what}")


def gone(name: str, reason: str) -> MemoryFailure:
    """What to raise for a server that cannot be used, for this reason."""
    kind = MemoryFailure if reason == refused() else Away
    return kind(f"{name} {reason}")
