"""Async clients of Weaviate, each closed by the event loop that it belongs to, at the latest when the loop ends."""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator
from contextlib import suppress

import weaviate

from stepcraft.memory.weaviate.client import settings
from stepcraft.memory.weaviate.url import Server

Client = weaviate.WeaviateAsyncClient

_open: dict[Client, tuple[AbstractEventLoop, AsyncGenerator[Client]]] = {}
"""Holds the lifetime of each client until it is over: a loop finds only generators that somebody holds."""
_ending: set[asyncio.Task[None]] = set()
"""A loop does not hold its tasks."""


async def connected(server: Server) -> Client:
    """A client that the running loop closes when it ends, as `asyncio.run` makes it do."""
    for client, (loop, _) in list(_open.items()):
        if loop.is_closed():  # without having ended its generators
            _open.pop(client, None)
    lifetime = _lifetime(server)
    client = await anext(lifetime)
    _open[client] = asyncio.get_running_loop(), lifetime
    return client


def end(client: Client) -> None:
    """Close a client soon; called in its loop."""
    task = asyncio.get_running_loop().create_task(ended(client))
    _ending.add(task)
    task.add_done_callback(_ending.discard)


async def ended(client: Client) -> None:
    """Close a client; it may be called twice."""
    if client in _open:
        with suppress(RuntimeError):  # it is being closed
            await _open[client][1].aclose()


async def _lifetime(server: Server) -> AsyncGenerator[Client]:
    client = weaviate.use_async_with_custom(**settings(server))
    try:
        await client.connect()
        yield client
    finally:
        try:
            await _closed(client)
        finally:
            _open.pop(client, None)


async def _closed(client: Client) -> None:
    try:
        await client.close()
    except asyncio.CancelledError:
        # The loop ends, and cancels what is under way: half a client would stay open.
        await client.close()
        raise
