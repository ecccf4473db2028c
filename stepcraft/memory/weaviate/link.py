"""A connection to Weaviate that fails early, in plain sentences, and mends itself."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import weaviate

from stepcraft.errors import MemoryFailure, StepcraftError
from stepcraft.memory.weaviate.client import FAULTS, PAUSE_S, Held, failure, gone, lost, settings, waking
from stepcraft.memory.weaviate.probe import unreachable
from stepcraft.memory.weaviate.url import Server
from stepcraft.memory.weaviate.watch import Watch, closed

_Result = TypeVar("_Result")
_Held = Held[weaviate.WeaviateClient]


class Link:
    """One client of a server, shared by threads; made anew when the server was away.

    The client itself waits a minute or longer for a server that is gone. Here a watch asks the server when a
    call takes long, and closes the client if nothing answers, which ends the call.

    Args:
        name: what the memory is called in messages.
        server: tells where the server is; asked again for each new client.
        use: the collection, from a client.
    """

    def __init__(self, name: str, server: Callable[[], Server], use: Callable[[Any], Any]) -> None:
        self._name = name
        self._server = server
        self._use = use
        self._lock = threading.Lock()
        self._held: Future[_Held] | None = None
        self._watch = Watch()
        self._closed = False

    def call(self, action: Callable[[_Held], _Result]) -> _Result:
        """What the action gives; it is tried again once if the connection was lost and the server is there.

        Raises:
            MemoryFailure: the server cannot be reached, or refuses.
        """
        since = time.monotonic()
        while True:
            held, fresh = self._connected()
            since = max(since, held.since)
            call = self._watch.begin(held)
            try:
                return action(held)
            except StepcraftError:
                raise
            except FAULTS as error:
                if waking(error, since):
                    time.sleep(PAUSE_S)
                    continue
                reason = call.reason or unreachable(held.server)
                if reason or lost(error):
                    self._drop(held)
                if reason and self._server() != held.server:
                    reason = ""  # an embedded server that had ended was started again
                if reason or fresh or not lost(error):
                    raise failure(self._name, error, reason) from error
            finally:
                self._watch.end(call)

    def close(self) -> None:
        """Close the client; it may be called twice."""
        with self._lock:
            self._closed = True
            held, self._held = self._held, None
        self._watch.close()
        if held and not held.exception():
            closed(held.result().client)

    def _connected(self) -> tuple[_Held, bool]:
        """The client, and whether it was made for this call; threads that come meanwhile share what becomes of it."""
        with self._lock:
            if self._closed:
                raise MemoryFailure(f"{self._name} was closed; open it again")
            held, fresh = self._held or Future[_Held](), not self._held
            self._held = held
        if fresh:
            try:
                held.set_result(self._connect())
            except BaseException as error:
                with self._lock:
                    self._held = None if self._held is held else self._held
                held.set_exception(error)
        return held.result(), fresh

    def _connect(self) -> _Held:
        server = self._server()
        if reason := unreachable(server):
            raise gone(self._name, reason)
        try:
            client = weaviate.connect_to_custom(**settings(server))
        except FAULTS as error:
            raise failure(self._name, error) from error
        return Held(client, server, self._use(client))

    def _drop(self, held: _Held) -> None:
        with self._lock:
            if self._held and self._held.done() and self._held.result() is held:
                self._held = None
        closed(held.client)
