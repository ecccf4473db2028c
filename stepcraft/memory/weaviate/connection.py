"""A connection to Weaviate whose failing calls end within seconds, with a one-sentence error.

By itself, the client retries for a minute if a server is down, so each call has a time limit here.
"""

from collections.abc import Callable
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import grpc
import httpx
import weaviate
from weaviate.auth import Auth
from weaviate.collections import Collection
from weaviate.config import AdditionalConfig, Timeout
from weaviate.connect import ConnectionParams
from weaviate.exceptions import (
    UnexpectedStatusCodeError,
    WeaviateClosedClientError,
    WeaviateConnectionError,
)

from stepcraft.concurrency import within
from stepcraft.errors import MemoryFailure, StepcraftError
from stepcraft.memory.weaviate.url import KEY_VARIABLE, Address
from stepcraft.secrets import masked_line

SEARCH_S = 4.0
"""The time limit for a search, in seconds."""

_WORK_S = 120.0
"""The time limit for any other call, such as the import of a batch, in seconds."""

_CONNECT_S = 5.0
_OLDEST = (1, 27)
"""The oldest supported server version. Older clients do not enforce it if startup checks are
skipped.
"""

_LOST = (httpx.TransportError, OSError, WeaviateClosedClientError, WeaviateConnectionError)
_LOST_CODES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_TOO_LATE = grpc.StatusCode.DEADLINE_EXCEEDED

T = TypeVar("T")
Objects = Collection[Any, Any]
Action = Callable[[Objects], T]


class Connection:
    """A client for a server, shared by all threads and replaced once the connection is lost.

    Args:
        address: The collection and its server.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client: weaviate.WeaviateClient | None = None
        self._connecting = Lock()
        self._closed = False

    def search(self, action: Action[T]) -> T:
        """Return the result of a search on the collection, within `SEARCH_S`.

        The search is repeated once if the connection was lost and the server is up.

        Raises:
            MemoryFailure: The server cannot be reached, refuses the request or does not answer in
                time, or this connection was closed.
        """
        return self._within(SEARCH_S, action)

    def call(self, action: Action[T]) -> T:
        """Return the result of any other action on the collection.

        This works like `search`, but first checks that the server is up, and has a longer time
        limit.
        """
        self._check_ready()
        return self._within(_WORK_S, action)

    def client(self) -> weaviate.WeaviateClient:
        """Return the connected client."""
        with self._connecting:
            self._client = self._client or self._connected()
            return self._client

    def close(self) -> None:
        """Close the client; calls in progress fail. Closing it again does nothing."""
        self._closed = True
        self._drop(self._client)

    def _within(self, seconds: float, action: Action[T]) -> T:
        try:
            return within(seconds, partial(self._performed, action))
        except NotInTime as error:
            self._drop(self._client)
            raise self._failure(error, seconds) from error

    def _performed(self, action: Action[T], *, repeat: bool = True) -> T:
        client = self.client()
        try:
            return action(self._objects(client))
        except StepcraftError:
            raise
        except Exception as error:  # of any kind, if something other than Weaviate answers
            lost = _is_lost(error)
            if lost:
                self._drop(client)
            if not (lost and repeat) or self._closed:
                raise self._failure(error) from error
        return self._performed(action, repeat=False)

    def _objects(self, client: weaviate.WeaviateClient) -> Objects:
        objects: Objects = client.collections.use(self._address.collection)
        return objects.with_tenant(self._address.tenant) if self._address.tenant else objects

    def _connected(self) -> weaviate.WeaviateClient:
        self._check_ready()
        address, key, client = self._address, self._address.key(), None
        try:
            client = weaviate.WeaviateClient(
                ConnectionParams.from_params(
                    http_host=address.host,
                    http_port=address.port,
                    http_secure=address.tls,
                    grpc_host=address.grpc_host,
                    grpc_port=address.grpc_port,
                    grpc_secure=address.tls,
                ),
                auth_client_secret=Auth.api_key(key) if key else None,
                additional_config=AdditionalConfig(
                    timeout=Timeout(init=_CONNECT_S, query=_WORK_S, insert=_WORK_S)
                ),
                skip_init_checks=True,  # they ask the package index for the latest version
            )
            client.connect()
            self._check_version(str(client.get_meta().get("version")))
            self._check_grpc()
        except Exception as error:
            self._drop(client)
            if isinstance(error, StepcraftError):
                raise
            raise self._failure(error) from error
        return client

    def _check_ready(self) -> None:
        """Check that the server is ready, which takes a millisecond if it is."""
        address = self._address
        if self._closed:
            raise MemoryFailure(f"{address.name} was closed; open it again")
        try:
            # The request's own time limits do not apply to the name lookup.
            reply = within(
                _CONNECT_S,
                partial(httpx.get, f"{address.url}/v1/.well-known/ready", trust_env=False),
            )
        except (httpx.TransportError, httpx.InvalidURL, NotInTime) as error:
            reason = str(error) or f"it did not answer within {_CONNECT_S} s"
            raise MemoryFailure(
                f"{address.name} cannot be reached at {address.url} ({reason}); check host, port "
                "and tls=, and whether Weaviate is running there"
            ) from error
        if not reply.is_success:
            raise MemoryFailure(
                f"{address.name}: what answers at {address.url} is no Weaviate, or one that is not "
                f"ready ({reply.status_code}); check host and port, or try again in a moment"
            )

    def _check_version(self, version: str) -> None:
        if tuple(map(int, version.split(".")[:2])) < _OLDEST:
            raise MemoryFailure(
                f"{self._address.name}: Weaviate {version} is not supported; use 1.27 or newer"
            )

    def _check_grpc(self) -> None:
        """Reject a wrong gRPC port, to which the client would try to connect for a minute."""
        address = self._address
        place = f"{address.grpc_host}:{address.grpc_port}"
        channel = (
            grpc.secure_channel(place, grpc.ssl_channel_credentials())
            if address.tls
            else grpc.insecure_channel(place)
        )
        with channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=_CONNECT_S)
            except grpc.FutureTimeoutError as error:
                raise MemoryFailure(
                    f"{address.name} answers over HTTP, but its gRPC port does not at {place}; "
                    "open it, or name it as ?grpc=PORT"
                ) from error

    def _drop(self, client: weaviate.WeaviateClient | None) -> None:
        """Close a client; the next call reconnects."""
        if client is self._client:
            self._client = None
        if client:
            with suppress(Exception):
                client.close()

    def _failure(self, error: BaseException, seconds: float = _WORK_S) -> MemoryFailure:
        name, reason = self._address.name, masked_line(error)
        if isinstance(error, NotInTime) or _code(error) is _TOO_LATE:
            reason = f"it did not answer within {seconds:g} s; check that Weaviate is running there"
        if isinstance(error, UnexpectedStatusCodeError) and error.status_code in (401, 403, 7, 16):
            reason = f"it refuses access; set {KEY_VARIABLE} to a key that the server knows"
        return MemoryFailure(f"{name} failed: {reason}")


def _is_lost(error: BaseException | None) -> bool:
    """Return whether the connection failed, rather than the request."""
    while error:
        if isinstance(error, _LOST) or _code(error) in _LOST_CODES:
            return True
        error = error.__cause__ or error.__context__
    return False


def _code(error: BaseException) -> grpc.StatusCode | None:
    """Return the status of a failed gRPC call, or None for any other error."""
    if isinstance(error, grpc.RpcError) and isinstance(error, grpc.Call):
        return error.code()
    return None
