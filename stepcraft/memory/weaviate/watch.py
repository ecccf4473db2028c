"""Ends calls of sync clients whose server does not answer any more."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import weaviate

from stepcraft.memory.weaviate.client import PATIENCE_S, Held
from stepcraft.memory.weaviate.probe import unreachable

_TICK_S = 0.25


@dataclass(eq=False)
class Call:
    """A call that is under way."""

    held: Held[weaviate.WeaviateClient]
    due: float
    reason: str = ""
    """Why its server cannot be used, once that was found out."""


class Watch:
    """Closes a client while a call on it takes long and its server does not answer."""

    def __init__(self) -> None:
        self._calls: dict[int, Call] = {}
        self._wake = threading.Event()
        self._end = threading.Event()
        self._started = False
        self._starting = threading.Lock()

    def begin(self, held: Held[weaviate.WeaviateClient]) -> Call:
        """Watch a call from now on."""
        if not self._started:
            self._start()
        call = Call(held, time.monotonic() + PATIENCE_S)
        self._calls[id(call)] = call
        if not self._wake.is_set():
            self._wake.set()
        return call

    def end(self, call: Call) -> None:
        """Watch a call no more."""
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


def closed(client: weaviate.WeaviateClient) -> None:
    """Close a client; other threads may be closing it too, or be in the middle of a call."""
    with suppress(Exception):
        client.close()


def _watch(calls: dict[int, Call], wake: threading.Event, end: threading.Event) -> None:
    while not end.is_set():
        wake.wait()
        end.wait(_TICK_S)
        for call in list(calls.values()):
            if time.monotonic() < call.due or id(call) not in calls:
                continue
            if reason := unreachable(call.held.server):
                for each in list(calls.values()):
                    if each.held is call.held:
                        each.reason = reason
                closed(call.held.client)
            call.due = time.monotonic() + PATIENCE_S
        wake.clear()
        if calls:
            wake.set()
