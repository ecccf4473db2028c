"""Connections to Weaviate from event loops that fail early, in plain sentences, and mend themselves."""

import asyncio
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from stepcraft.concurrency import in_thread
from stepcraft.errors import MemoryFailure, StepcraftError
from stepcraft.memory.weaviate import async_client as clients
from stepcraft.memory.weaviate.client import FAULTS, PATIENCE_S, PAUSE_S, Held, failure, gone, lost, waking
from stepcraft.memory.weaviate.probe import unreachable
from stepcraft.memory.weaviate.url import Server

_Result = TypeVar("_Result")
_Held = Held[clients.Client]


class AsyncLink:
    """The clients of a server, one for each event loop: the client of another loop cannot be used.

    When a call takes long, a thread asks whether the server is there; if nothing answers, the call ends.

    Args:
        name: what the memory is called in messages.
        server: tells where the server is; asked again for each new client, in a thread.
        use: the collection, from a client.
    """

    def __init__(self, name: str, server: Callable[[], Server], use: Callable[[Any], Any]) -> None:
        self._name = name
        self._server = server
        self._use = use
        self._lanes: dict[AbstractEventLoop, _Lane] = {}
        self._lock = threading.Lock()
        self._closed = False

    async def call(self, action: Callable[[_Held], Awaitable[_Result]]) -> _Result:
        """What the action gives; it is tried again once if the connection was lost and the server is there.

        Raises:
            MemoryFailure: the server cannot be reached, or refuses.
        """
        since = time.monotonic()
        while True:
            lane = self._lane()
            held, fresh = await lane.connected(self._connect)
            since = max(since, held.since)
            try:
                return await lane.in_time(held, action(held))
            except StepcraftError:
                raise
            except FAULTS as error:
                if waking(error, since):
                    await asyncio.sleep(PAUSE_S)
                    continue
                reason = error.reason if isinstance(error, _Gone) else await lane.reason(held.server)
                if reason or lost(error):
                    lane.drop(held)
                if reason and await self._serving() != held.server:
                    reason = ""  # an embedded server that had ended was started again
                if reason or fresh or not lost(error):
                    raise failure(self._name, error, reason) from error

    def close(self) -> None:
        """Have each loop close its client: soon, or when it ends. It may be called twice, and from any thread."""
        with self._lock:
            self._closed = True
            lanes, self._lanes = self._lanes, {}
        for loop, lane in lanes.items():
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(lane.end)

    async def aclose(self) -> None:
        """As `close`, and what belongs to the running loop is closed when this returns."""
        lane = self._lanes.get(asyncio.get_running_loop())
        self.close()
        if lane and lane.held:
            await clients.ended(lane.held.client)

    def _lane(self) -> "_Lane":
        self._check_open()
        loop = asyncio.get_running_loop()
        lane = self._lanes.get(loop)
        if lane:
            return lane
        with self._lock:
            self._check_open()
            for other in [known for known in self._lanes if known.is_closed()]:
                del self._lanes[other]
            return self._lanes.setdefault(loop, _Lane())

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryFailure(f"{self._name} was closed; open it again")

    async def _serving(self) -> Server:
        return await asyncio.wrap_future(in_thread(self._server))

    async def _connect(self, lane: "_Lane") -> _Held:
        server = await self._serving()
        if reason := await lane.reason(server):
            raise gone(self._name, reason)
        try:
            client = await clients.connected(server)
        except FAULTS as error:
            raise failure(self._name, error) from error
        if self._closed:
            await clients.ended(client)
        self._check_open()
        return Held(client, server, self._use(client))


class _Gone(OSError):
    """A call that took long was given up, as its server cannot be used."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(eq=False)
class _Call:
    server: Server
    limit: asyncio.Timeout
    reason: str = ""
    over: bool = False


class _Lane:
    """The client of one event loop; used in that loop only."""

    def __init__(self) -> None:
        self.held: _Held | None = None
        self._opening: asyncio.Task[_Held] | None = None
        self._asked: Future[str] | None = None

    async def connected(self, connect: "Callable[[_Lane], Awaitable[_Held]]") -> tuple[_Held, bool]:
        """The client, and whether it was made for this call; calls that come meanwhile share what becomes of it."""
        if self.held:
            return self.held, False
        fresh, opening = not self._opening, self._opening or asyncio.create_task(self._open(connect))
        self._opening = opening
        return await asyncio.shield(opening), fresh

    async def in_time(self, held: _Held, call: Awaitable[_Result]) -> _Result:
        """What a call gives.

        Raises:
            OSError: it takes long and the server cannot be used, or the connection was closed.
        """
        under_way = _Call(held.server, asyncio.timeout(None))
        look = asyncio.get_running_loop().call_later(PATIENCE_S, self._look, under_way)
        try:
            async with under_way.limit:
                return await call
        except TimeoutError:
            raise _Gone(under_way.reason) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            # Closing the client cancels its calls, not those who wait for them.
            raise ConnectionError("the connection was closed") from None
        finally:
            under_way.over = True
            look.cancel()

    async def reason(self, server: Server) -> str:
        """Why the server cannot be used; "" if it can. Calls that ask at the same time share the answer."""
        return await self._answer(server)

    def drop(self, held: _Held) -> None:
        """Close a client, so that the next call makes another one."""
        if self.held is held:
            self.held = None
        clients.end(held.client)

    def end(self) -> None:
        """Close the client."""
        if self.held:
            clients.end(self.held.client)

    def _answer(self, server: Server) -> asyncio.Future[str]:
        if not self._asked or self._asked.done():
            self._asked = in_thread(lambda: unreachable(server))
        return asyncio.wrap_future(self._asked)

    def _look(self, call: _Call) -> None:
        if not call.over:
            self._answer(call.server).add_done_callback(partial(self._looked, call))

    def _looked(self, call: _Call, answer: asyncio.Future[str]) -> None:
        loop = asyncio.get_running_loop()
        call.reason = answer.result()
        if not call.reason:
            loop.call_later(PATIENCE_S, self._look, call)
        elif not call.over:
            call.limit.reschedule(loop.time())

    async def _open(self, connect: "Callable[[_Lane], Awaitable[_Held]]") -> _Held:
        try:
            self.held = await connect(self)
        finally:
            self._opening = None
        return self.held
