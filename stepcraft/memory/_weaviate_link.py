"""A connection to Weaviate that fails early, in plain sentences, and mends itself."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import grpc
import httpx
import weaviate
from weaviate.auth import Auth
from weaviate.config import AdditionalConfig, Timeout
from weaviate.exceptions import UnexpectedStatusCodeError, WeaviateBaseError

from stepcraft.errors import MemoryFailure, StepcraftError, without_secrets
from stepcraft.memory._weaviate_probe import in_time, refused, unreachable
from stepcraft.memory._weaviate_url import Server, api_key

PATIENCE_S = 1.5
"""After how many seconds of a call the server is asked whether it is still there."""

_TIMEOUT = Timeout(init=2, query=30, insert=120)
_TICK_S = 0.25
_Result = TypeVar("_Result")


class Away(MemoryFailure):
    """The server cannot be reached now; it may come back."""


class Link:
    """One client of a server, shared by threads; made anew when the server was away.

    The client itself waits a minute or longer for a server that is gone. Here a watch asks the server when a
    call takes long, and closes the client if nothing answers, which ends the call.

    Args:
        name: what the memory is called in messages.
        server: tells where the server is; asked again for each new client.
    """

    def __init__(self, name: str, server: Callable[[], Server]) -> None:
        self._name = name
        self._server = server
        self._lock = threading.RLock()
        self._client: weaviate.WeaviateClient | None = None
        self._watch = _Watch()
        self._closed = False

    def call(self, action: Callable[[weaviate.WeaviateClient], _Result]) -> _Result:
        """What the action gives; it is tried again once if the connection was lost and the server is there.

        Raises:
            MemoryFailure: the server cannot be reached, or refuses.
        """
        while True:
            client, fresh = self._connected()
            try:
                with self._watch.over(client, self._server()):
                    return action(client)
            except StepcraftError:
                raise
            except (WeaviateBaseError, httpx.HTTPError, grpc.RpcError, ValueError, OSError) as error:
                reason = unreachable(self._server())
                if reason or _lost(error):
                    self._drop(client)
                if reason or fresh or not _lost(error):
                    raise self._plain(error, reason) from error

    def close(self) -> None:
        """Close the client; it may be called twice."""
        with self._lock:
            self._closed = True
            self._watch.close()
            if self._client:
                self._drop(self._client)

    def _connected(self) -> tuple[weaviate.WeaviateClient, bool]:
        with self._lock:
            if self._closed:
                raise MemoryFailure(f"{self._name} was closed; open it again")
            if self._client:
                return self._client, False
            server = self._server()
            if reason := in_time(lambda: unreachable(server), "it did not answer in time"):
                raise self._gone(reason)
            try:
                self._client = _client(server)
            except (WeaviateBaseError, httpx.HTTPError, grpc.RpcError, OSError) as error:
                raise self._plain(error, "") from error
            return self._client, True

    def _drop(self, client: weaviate.WeaviateClient) -> None:
        with self._lock:
            if self._client is client:
                self._client = None
        _close(client)

    def _plain(self, error: Exception, reason: str) -> MemoryFailure:
        if reason:
            return self._gone(reason)
        if isinstance(error, UnexpectedStatusCodeError) and error.status_code in (401, 403, 7, 16):
            return MemoryFailure(f"{self._name} {refused()}")
        what = " ".join(without_secrets(str(error)).split())[:300]
        kind = Away if _lost(error) else MemoryFailure
        return kind(f"{self._name} failed: {what}")

    def _gone(self, reason: str) -> MemoryFailure:
        kind = MemoryFailure if reason == refused() else Away
        return kind(f"{self._name} {reason}")


def _client(server: Server) -> weaviate.WeaviateClient:
    return weaviate.connect_to_custom(
        http_host=server.host,
        http_port=server.port,
        http_secure=server.tls,
        grpc_host=server.grpc_host,
        grpc_port=server.grpc_port,
        grpc_secure=server.tls,
        auth_credentials=Auth.api_key(api_key()) if api_key() else None,
        additional_config=AdditionalConfig(timeout=_TIMEOUT),
        skip_init_checks=True,
    )


def _close(client: weaviate.WeaviateClient) -> None:
    """Other threads may be closing it too, or be in the middle of a call."""
    with suppress(Exception):
        client.close()


def _lost(error: Exception) -> bool:
    """Whether the connection failed, and not what was asked for."""
    text = str(error).lower()
    return isinstance(error, httpx.TransportError | OSError) or any(
        sign in text for sign in ("closed", "unavailable", "cancelled", "connection", "socket")
    )


@dataclass
class _Call:
    due: float
    client: weaviate.WeaviateClient
    server: Server


class _Watch:
    """Closes a client while a call on it takes long and its server does not answer."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._wake = threading.Event()
        self._end = threading.Event()
        self._started = False
        self._starting = threading.Lock()

    @contextmanager
    def over(self, client: weaviate.WeaviateClient, server: Server) -> Generator[None]:
        """Watch what happens in the block."""
        if not self._started:
            self._start()
        call = _Call(time.monotonic() + PATIENCE_S, client, server)
        self._calls[id(call)] = call
        if not self._wake.is_set():
            self._wake.set()
        try:
            yield
        finally:
            del self._calls[id(call)]

    def close(self) -> None:
        """Watch no more."""
        self._end.set()
        self._wake.set()

    def _start(self) -> None:
        with self._starting:
            if not self._started:
                parts = (self._calls, self._wake, self._end)
                threading.Thread(target=_watch, args=parts, name="stepcraft-weaviate", daemon=True).start()
                self._started = True


def _watch(calls: dict[int, _Call], wake: threading.Event, end: threading.Event) -> None:
    while not end.is_set():
        wake.wait()
        end.wait(_TICK_S)
        for call in list(calls.values()):
            if time.monotonic() < call.due or id(call) not in calls:
                continue
            if unreachable(call.server):
                _close(call.client)
            call.due = time.monotonic() + PATIENCE_S
        wake.clear()
        if calls:
            wake.set()
