"""A connection to Weaviate that fails within seconds, in one sentence, and reconnects by itself.

The client alone waits a minute or longer for a server that is gone, and its `is_connected` goes on saying yes. Here a
call that takes long has the server probed, and ends when the server does not answer the probe.
"""

import asyncio
import contextlib
import ssl
import time
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import grpc
import httpx
import weaviate
from weaviate.auth import Auth
from weaviate.collections import CollectionAsync
from weaviate.config import AdditionalConfig, Timeout
from weaviate.exceptions import UnexpectedStatusCodeError, WeaviateBaseError

from stepcraft.concurrency import in_thread
from stepcraft.errors import BadInput, MemoryFailure, StepcraftError
from stepcraft.memory.weaviate.loop import BackgroundLoop
from stepcraft.memory.weaviate.url import KEY_HOSTS, KEY_VARIABLE, Address, Server
from stepcraft.secrets import without_secrets

PROBE_S = 1.5
"""How long a server may take to answer a probe, over HTTP and over gRPC each, in seconds."""

_PATIENCE_S = 1.5
"""After how many seconds of a call the server is probed, and probed again."""

_TICK_S = 0.25
"""How often the calls under way are looked at, in seconds."""

_STARTUP_S = 4.0
"""How long calls wait for a server that was just started to load its collections, in seconds."""

_STARTUP_PAUSE_S = 0.1
_OLDEST = (1, 27)
_TIMEOUT = Timeout(init=2, query=30, insert=120)
_FAULTS = (
    WeaviateBaseError,
    httpx.HTTPError,
    grpc.RpcError,
    grpc.aio.UsageError,
    ValueError,
    OSError,
)
"""The exceptions of the client."""

_NO_KEY = f"asks for a key; set {KEY_VARIABLE} to one that the server knows"
_WRONG_KEY = f"refuses the key; set {KEY_VARIABLE} to one that the server knows"
"""The ends of sentences about a server that wants another key."""

_Result = TypeVar("_Result")
Objects = CollectionAsync[Any, Any]


class ServerUnavailable(MemoryFailure):
    """The server cannot be reached now, or has not loaded its collections yet; raised on the background loop only."""


@dataclass(eq=False)
class Session:
    """A connected client."""

    client: weaviate.WeaviateAsyncClient
    server: Server
    objects: Objects
    """The collection."""
    since: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class _Call:
    """A call under way."""

    session: Session
    task: "asyncio.Task[Any]"
    due: float
    """When the server is probed."""
    reason: str = ""
    """Why the server cannot be used, once a probe found out."""


Action = Callable[[Session], Awaitable[_Result]]


class Connection:
    """One client of a server for all threads and event loops; replaced when the server was away.

    Args:
        address: the collection, and what it is called in messages.
        locate: returns where the server answers; called in a thread, again for each new client.
    """

    def __init__(self, address: Address, locate: Callable[[], Server]) -> None:
        self._address = address
        self._name = address.name
        self._locate = locate
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        """Begin without a client: at first, and in a child process, where the parent's loop does not run."""
        self._background = BackgroundLoop.current()
        # All of this is changed on the background loop only, so that it needs no lock.
        self._session: Session | None = None
        self._connecting: asyncio.Task[Session] | None = None
        self._calls: set[_Call] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._probing: tuple[Server, Future[str]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def call(self, action: Action[_Result]) -> _Result:
        """Return what the action on a session gives; it is repeated once if the connection was lost.

        Raises:
            MemoryFailure: the server cannot be reached, or refuses, or the connection was closed.
        """
        try:
            return BackgroundLoop.current().call(self.perform(action))
        except ServerUnavailable as error:
            raise MemoryFailure(str(error)) from error.__cause__

    async def acall(self, action: Action[_Result]) -> _Result:
        """As `call`, without blocking the running event loop."""
        try:
            return await BackgroundLoop.current().acall(self.perform(action))
        except ServerUnavailable as error:
            raise MemoryFailure(str(error)) from error.__cause__

    async def perform(self, action: Action[_Result]) -> _Result:
        """As `call`, on the background loop.

        Raises:
            ServerUnavailable: the server cannot be reached now.
            MemoryFailure: it refuses, or the connection was closed.
        """
        task = asyncio.current_task()
        assert task  # noqa: S101 - coroutines run in tasks here
        if self._background is not BackgroundLoop.current():
            self._reset()
        started = time.monotonic()
        while True:
            session, fresh = await self._connected()
            call = self._watched(session, task)
            try:
                return await action(session)
            except StepcraftError:
                raise
            except asyncio.CancelledError:
                if call.reason:
                    task.uncancel()
                if task.cancelling():
                    raise
                # Closing the client cancels its calls, not their tasks.
                error: Exception = ConnectionError("the connection was closed")
            except _FAULTS as fault:
                error = fault
            finally:
                self._calls.discard(call)
            if _loads(error) and time.monotonic() - max(started, session.since) < _STARTUP_S:
                await asyncio.sleep(_STARTUP_PAUSE_S)
            else:
                await self._recover(error, call, fresh=fresh)

    async def _recover(self, error: Exception, call: _Call, *, fresh: bool) -> None:
        """Return if the call is worth repeating on another session; raise what it failed with otherwise."""
        self._check_open()
        reason = call.reason or await self._unreachable(call.session.server)
        if reason or _lost(error):
            if self._session is call.session:
                self._session = None
            self._spawn(_close(call.session.client))
        if reason and await self._located() != call.session.server:
            reason = ""  # an embedded server that had ended was started again
        if reason or fresh or not _lost(error):
            raise self._failure(error, call.session.server, reason) from error

    def close(self) -> None:
        """Close the client; calls under way fail. It may be called twice."""
        if self._closes():
            BackgroundLoop.current().call(self._disconnect())

    def release(self) -> None:
        """As `close`, without waiting for it, as a finalizer must."""
        if self._closes():
            BackgroundLoop.current().start(self._disconnect())

    def _closes(self) -> bool:
        """Mark the connection as closed, and return whether there is a client to close."""
        self._closed = True
        return self._session is not None and self._session.client.is_connected()

    async def _disconnect(self) -> None:
        if self._session:
            await _close(self._session.client)

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryFailure(f"{self._name} was closed; open it again")

    async def _connected(self) -> tuple[Session, bool]:
        """Return the session, and whether it was made for this call; calls that come meanwhile share it."""
        self._check_open()
        if self._session and self._session.client.is_connected():  # not so after a fork
            return self._session, False
        fresh = not self._connecting
        self._connecting = self._connecting or asyncio.create_task(self._connect())
        return await asyncio.shield(self._connecting), fresh

    async def _connect(self) -> Session:
        try:
            server = await self._located()
            if server.api_key and not server.may_have_key:
                raise BadInput(
                    f"{self._name}: the key in {KEY_VARIABLE} would be sent in clear to {server.host}; name a server with "
                    f"tls=true, or unset the key, or add the host to {KEY_HOSTS} if the network to it is private"
                )
            if reason := await self._unreachable(server):
                raise _unusable(self._name, reason)
            client = weaviate.use_async_with_custom(
                http_host=server.host,
                http_port=server.port,
                http_secure=server.tls,
                grpc_host=server.grpc_host,
                grpc_port=server.grpc_port,
                grpc_secure=server.tls,
                auth_credentials=Auth.api_key(server.api_key) if server.api_key else None,
                additional_config=AdditionalConfig(timeout=_TIMEOUT),
                skip_init_checks=True,
            )
            try:
                await client.connect()
                self._check_open()
            except BaseException as error:
                await client.close()
                if isinstance(error, _FAULTS):
                    raise self._failure(error, server) from error
                raise
            BackgroundLoop.current().clients[client] = partial(_close, client)
            # The arguments are of our own making, and the client takes its time to validate them.
            objects: Objects = client.collections.use(
                self._address.collection, skip_argument_validation=True
            )
            if self._address.tenant:
                objects = objects.with_tenant(self._address.tenant)
            self._session = Session(client, server, objects)
            return self._session
        finally:
            self._connecting = None

    async def _located(self) -> Server:
        return await asyncio.wrap_future(in_thread(self._locate))

    async def _unreachable(self, server: Server) -> str:
        """As `unreachable`; calls that ask at the same time share the answer."""
        if not self._probing or self._probing[1].done() or self._probing[0] != server:
            self._probing = server, in_thread(partial(unreachable, server))
        return await asyncio.shield(asyncio.wrap_future(self._probing[1]))

    def _spawn(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        task = asyncio.create_task(work)
        self._tasks.add(task)  # a loop does not keep its tasks alive
        task.add_done_callback(self._tasks.discard)

    def _watched(self, session: Session, task: "asyncio.Task[Any]") -> _Call:
        call = _Call(session, task, time.monotonic() + _PATIENCE_S)
        self._calls.add(call)
        if not self._timer:
            self._timer = task.get_loop().call_later(_TICK_S, self._tick, task.get_loop())
        return call

    def _tick(self, loop: AbstractEventLoop) -> None:
        """Have the servers of calls that take long probed; ends when no call is under way."""
        self._timer = loop.call_later(_TICK_S, self._tick, loop) if self._calls else None
        now = time.monotonic()
        for session in {call.session for call in self._calls if call.due <= now}:
            for call in self._calls:
                if call.session is session:
                    call.due = now + _PATIENCE_S + PROBE_S
            self._spawn(self._examine(session))

    async def _examine(self, session: Session) -> None:
        """End the calls of a session if its server cannot be used."""
        reason = await self._unreachable(session.server)
        for call in self._calls:
            if call.session is session and reason and not call.reason:
                call.reason = reason
                call.task.cancel()
            call.due = time.monotonic() + _PATIENCE_S

    def _failure(self, error: Exception, server: Server, reason: str = "") -> MemoryFailure:
        """Return what to raise for an exception of the client.

        Args:
            error: the exception.
            server: the server that was called.
            reason: why the server cannot be used; "" if it can.
        """
        if reason:
            return _unusable(self._name, reason)
        if isinstance(error, UnexpectedStatusCodeError) and error.status_code in (401, 403, 7, 16):
            return MemoryFailure(f"{self._name} {_refusal(server)}")
        if _loads(error):
            return ServerUnavailable(
                f"{self._name}: the server does not know the collection; one that was just started may still be "
                "loading it, so try again in a moment, or see whether the collection was dropped"
            )
        what = " ".join(without_secrets(str(error)).split())[:300]
        kind = ServerUnavailable if _lost(error) else MemoryFailure
        return kind(f"{self._name} failed: {what}")


async def _close(client: weaviate.WeaviateAsyncClient) -> None:
    """Close a client, whatever state it is in."""
    BackgroundLoop.current().clients.pop(client, None)
    with contextlib.suppress(Exception):
        await client.close()


def _unusable(name: str, reason: str) -> MemoryFailure:
    kind = MemoryFailure if reason in {_NO_KEY, _WRONG_KEY} else ServerUnavailable
    return kind(f"{name} {reason}")


def _lost(error: Exception) -> bool:
    """Whether the connection failed, and not what was asked for."""
    text = str(error).lower()
    return isinstance(error, httpx.TransportError | OSError) or any(
        sign in text for sign in ("closed", "unavailable", "cancelled", "connection", "socket")
    )


def _loads(error: Exception) -> bool:
    """Whether the server does not know the collection: perhaps it has just been started and still loads it."""
    return any(sign in str(error) for sign in ("non-existing index", "could not find class"))


def unreachable(server: Server) -> str:
    """Probe a server: return why it cannot be used, as the end of a sentence, or "" if it can. Takes 3.1 s at most."""
    try:
        return in_thread(partial(_probe, server)).result(2 * PROBE_S + 0.1)
    except TimeoutError:  # a name look-up may take longer than any timeout that can be set
        return f"cannot be reached: {server.http} did not answer in time; check host and port"


def ready(server: Server) -> bool:
    """Whether a server has loaded its collections."""
    try:
        return httpx.get(
            f"{server.http}/v1/.well-known/ready", timeout=PROBE_S, trust_env=False
        ).is_success
    except httpx.TransportError:
        return False


def _probe(server: Server) -> str:
    headers = {"Authorization": f"Bearer {server.api_key}"} if server.api_key else {}
    try:
        reply = httpx.get(
            f"{server.http}/v1/meta", headers=headers, timeout=PROBE_S, trust_env=False
        )
    except (httpx.TransportError, httpx.InvalidURL) as error:
        return _http_fault(server, error)
    if reply.status_code in (401, 403):
        return _refusal(server)
    try:
        version = str(reply.json()["version"])
    except (ValueError, LookupError, TypeError):
        return f"is no Weaviate: {server.http}/v1/meta answers {reply.status_code}; check host and port"
    found = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if found < _OLDEST:
        return (
            f"is Weaviate {version}, which is too old; it takes {_OLDEST[0]}.{_OLDEST[1]} or newer"
        )
    return _probe_grpc(server)


def _http_fault(server: Server, error: httpx.TransportError | httpx.InvalidURL) -> str:
    text = str(error)
    if isinstance(error, httpx.InvalidURL):
        return f"cannot be reached: {server.http} is no address ({text}); check host and port"
    if isinstance(error, httpx.TimeoutException):
        return f"cannot be reached: {server.http} did not answer within {PROBE_S} s; is Weaviate running there?"
    if isinstance(error.__cause__, ssl.SSLError) or "SSL" in text or "CERTIFICATE" in text:
        return f"cannot be reached over TLS at {server.http} ({text}); check the port, and whether it is tls=true"
    if isinstance(error, httpx.RemoteProtocolError):
        return f"cannot be reached: {server.http} does not speak plain HTTP ({text}); check the port and tls="
    return f"cannot be reached at {server.http} ({text}); is Weaviate running there?"


def _probe_grpc(server: Server) -> str:
    """A health check by hand: the client's own looks up versions on the package index."""
    target = f"{server.grpc_host}:{server.grpc_port}"
    secured = grpc.ssl_channel_credentials() if server.tls else None
    with (
        grpc.secure_channel(target, secured)
        if secured
        else grpc.insecure_channel(target) as channel
    ):
        try:
            channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=PROBE_S)
        except grpc.RpcError as error:
            code = getattr(error, "code", lambda: None)()
            if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                return f"answers over HTTP, but its gRPC port does not at {target}; open it, or name it as ?grpc=PORT"
            if code is not grpc.StatusCode.UNAUTHENTICATED:
                return (
                    f"answers over HTTP, but what listens at {target} is not its gRPC; "
                    "name the port as ?grpc=PORT"
                )
    return ""


def _refusal(server: Server) -> str:
    return _WRONG_KEY if server.api_key else _NO_KEY
