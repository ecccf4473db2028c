"""A connection to Weaviate whose calls fail within seconds, in one sentence.

The client alone waits a minute or longer for a server that is gone, and its `is_connected` goes on
saying yes. So the server is probed over HTTP before a client connects, and while a call takes long.
"""

import asyncio
import atexit
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import grpc
import httpx
import weaviate
from weaviate.auth import Auth
from weaviate.collections import CollectionAsync
from weaviate.config import AdditionalConfig, Timeout
from weaviate.embedded import EmbeddedOptions
from weaviate.exceptions import (
    UnexpectedStatusCodeError,
    WeaviateBaseError,
    WeaviateClosedClientError,
    WeaviateConnectionError,
)

from stepcraft.concurrency import OncePerKey
from stepcraft.errors import MemoryFailure, StepcraftError
from stepcraft.memory.weaviate.url import EMBEDDED_PORTS, KEY_VARIABLE, VERSION, Address

_PATIENCE_S = 1.0
"""After how many seconds of a call the server is probed, and probed again."""

_OLDEST = (1, 27)
_PROBE_S = 1.5
"""How long a server may take to answer a probe."""

_TIMEOUT = Timeout(init=2, query=60, insert=600)
"""The client's own limits: a slow import is not cut off, as a dead server is found by the probe."""

# The client would take its inner ports at random from those of outgoing connections, where another
# program may have taken one meanwhile.
_EMBEDDED = {
    "AUTOSCHEMA_ENABLED": "false",
    "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
    "CLUSTER_BIND_ADDR": "127.0.0.1",
    "CLUSTER_DATA_BIND_PORT": "8076",
    "CLUSTER_GOSSIP_BIND_PORT": "8075",
    "DISABLE_TELEMETRY": "true",
    "ENABLE_MODULES": "",
    "GO_PROFILING_DISABLE": "true",
    "LOG_LEVEL": "fatal",
    "RAFT_INTERNAL_RPC_PORT": "8078",
    "RAFT_JOIN": f"Embedded_at_{EMBEDDED_PORTS[0]}:8077",
    "RAFT_PORT": "8077",
    "RAFT_TIMEOUTS_MULTIPLIER": "1",
}

_LOST = (httpx.TransportError, OSError, WeaviateClosedClientError, WeaviateConnectionError)
_LOST_CODES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)

T = TypeVar("T")
Objects = CollectionAsync[Any, Any]
Action = Callable[[Objects], Awaitable[T]]


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop on which the clients live, for all threads and event loops."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="stepcraft-weaviate", daemon=True).start()
    return loop


def start(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the background loop."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop())


class Connection:
    """One client of a server for all threads and event loops; replaced when the server was away."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client: weaviate.WeaviateAsyncClient | None = None
        self._connecting = asyncio.Lock()
        self._probing: asyncio.Task[None] | None = None
        self._closed = False

    def call(self, action: Action[T]) -> T:
        """Return what an action on the client and the collection gives.

        It is done again if the connection was lost and the server is there, so it must be one that
        may be repeated.

        Raises:
            MemoryFailure: The server cannot be reached, or refuses, or the connection was closed.
        """
        return start(self._perform(action)).result()

    def close(self) -> Future[None]:
        """Close the client; calls under way fail. It may be called twice."""
        self._closed = True
        return start(self._drop(self._client))

    async def client(self) -> weaviate.WeaviateAsyncClient:
        """Return the connected client; on the background loop."""
        if not self._client and not self._closed:
            await self._probe()
        async with self._connecting:
            if self._closed:
                raise MemoryFailure(f"{self._address.name} was closed; open it again")
            self._client = self._client or await self._connect()
            return self._client

    async def _perform(self, action: Action[T], *, repeat: bool = True) -> T:
        client = await self.client()
        objects = client.collections.use(self._address.collection)
        try:
            return await self._watched(action(objects))
        except StepcraftError:
            raise
        except Exception as error:  # of any kind, where something that is no Weaviate answers
            if not (repeat and _is_lost(error)):
                raise self._failure(error) from error
            await self._drop(client)
        return await self._perform(action, repeat=False)

    async def _watched(self, call: Awaitable[T]) -> T:
        """Await a call, and end it as soon as the server does not answer a probe."""
        task = asyncio.ensure_future(call)
        try:
            while not (await asyncio.wait({task}, timeout=_PATIENCE_S))[0]:
                await self._check_alive()
            if task.cancelled():
                raise ConnectionError("the connection was closed")
            return task.result()
        finally:
            task.cancel()

    async def _check_alive(self) -> None:
        """Close the client if the server is gone, or twice does not answer in time.

        A large message keeps this loop busy, too, so that one probe may be late.
        """
        try:
            try:
                await self._probe()
            except MemoryFailure as failure:
                if not isinstance(failure.__cause__, TimeoutError):
                    raise
                await self._probe()
        except MemoryFailure:
            await self._drop(self._client)
            raise

    async def _connect(self) -> weaviate.WeaviateAsyncClient:
        address, key = self._address, self._address.key()
        client = None
        try:
            client = weaviate.use_async_with_custom(
                http_host=address.host,
                http_port=address.port,
                http_secure=address.tls,
                grpc_host=address.grpc_host,
                grpc_port=address.grpc_port,
                grpc_secure=address.tls,
                auth_credentials=Auth.api_key(key) if key else None,
                additional_config=AdditionalConfig(timeout=_TIMEOUT),
                skip_init_checks=True,  # they ask the package index for the newest version
            )
            await client.connect()
            await self._check(await client.get_meta())
        except Exception as error:
            await self._drop(client)
            if isinstance(error, StepcraftError):
                raise
            raise self._failure(error) from error
        return client

    async def _check(self, meta: dict[str, Any]) -> None:
        """Refuse an old server and a wrong gRPC port at once.

        Clients look at no version where they skip their checks, and try a port for a minute.
        """
        address, version = self._address, str(meta.get("version"))
        if tuple(map(int, version.split(".")[:2])) < _OLDEST:
            raise MemoryFailure(
                f"{address.name}: Weaviate {version} is not supported; use 1.27 or newer"
            )
        place = f"{address.grpc_host}:{address.grpc_port}"
        channel = (
            grpc.aio.secure_channel(place, grpc.ssl_channel_credentials())
            if address.tls
            else grpc.aio.insecure_channel(place)
        )
        try:
            async with channel, asyncio.timeout(_PROBE_S):
                await channel.channel_ready()
        except TimeoutError as error:
            raise MemoryFailure(
                f"{address.name} answers over HTTP, but its gRPC port does not at {place}; "
                "open it, or name it as ?grpc=PORT"
            ) from error

    async def _drop(self, client: weaviate.WeaviateAsyncClient | None) -> None:
        """Close a client; the next call connects anew."""
        if self._client is client:
            self._client = None
        if client:
            with suppress(Exception):
                await client.close()

    async def _probe(self) -> None:
        """Raise MemoryFailure if the server is not ready; calls that wait share a probe."""
        if not self._probing or self._probing.done():
            self._probing = asyncio.create_task(self._check_ready())
        await asyncio.shield(self._probing)

    async def _check_ready(self) -> None:
        address = self._address
        host = f"[{address.host}]" if ":" in address.host else address.host
        url = f"{'https' if address.tls else 'http'}://{host}:{address.port}"
        try:
            # A name look-up may take longer than any time-out of the request.
            async with httpx.AsyncClient(trust_env=False) as http, asyncio.timeout(_PROBE_S):
                reply = await http.get(f"{url}/v1/.well-known/ready")
        except (httpx.TransportError, httpx.InvalidURL, TimeoutError) as error:
            reason = str(error) or f"it did not answer within {_PROBE_S} s"
            raise MemoryFailure(
                f"{address.name} cannot be reached at {url} ({reason}); check host, port and tls=, "
                "and whether Weaviate is running there"
            ) from error
        if not reply.is_success:
            raise MemoryFailure(
                f"{address.name}: what answers at {url} is no Weaviate, or one that is not ready "
                f"({reply.status_code}); check host and port, or try again in a moment"
            )

    def _failure(self, error: Exception) -> MemoryFailure:
        reason = " ".join(str(error).split())[:300]
        if isinstance(error, UnexpectedStatusCodeError) and error.status_code in (401, 403, 7, 16):
            reason = f"it refuses access; set {KEY_VARIABLE} to a key that the server knows"
        return MemoryFailure(f"{self._address.name} failed: {reason}")


def _is_lost(error: BaseException | None) -> bool:
    """Tell whether the connection failed, and not what was asked for."""
    while error:
        code = error.code() if isinstance(error, grpc.aio.AioRpcError) else None
        if isinstance(error, _LOST) or code in _LOST_CODES:
            return True
        error = error.__cause__ or error.__context__
    return False


_embedded: OncePerKey[Path, weaviate.WeaviateClient] = OncePerKey()


def start_embedded(folder: Path, binary: str | None) -> None:
    """Start the client's embedded server for a folder; it ends with this process.

    Raises:
        MemoryFailure: It cannot be started, as where another process has one.
    """

    def started() -> weaviate.WeaviateClient:
        options = EmbeddedOptions(
            version=VERSION,
            port=EMBEDDED_PORTS[0],
            grpc_port=EMBEDDED_PORTS[1],
            persistence_data_path=str(folder),
            additional_env_vars=_EMBEDDED,
        )
        if binary:
            options.binary_path = str(Path(binary).expanduser())
        # As `connect_to_embedded`, without asking the package index for the newest version.
        client = weaviate.WeaviateClient(embedded_options=options, skip_init_checks=True)
        client.connect()
        atexit.register(client.close)
        return client

    try:
        _embedded.get(folder, started)
    except (WeaviateBaseError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise MemoryFailure(
            f"an embedded Weaviate {VERSION} cannot be started in {folder} ({reason}): it is "
            "downloaded unless ?binary= names its folder, and one process at a time has one, "
            "so that several need a server (docker compose up) at "
            "weaviate://localhost:8080/Collection"
        ) from error
