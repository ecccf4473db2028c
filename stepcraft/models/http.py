"""HTTP clients for model providers, whose replies are bounded in size and let go when nobody waits for them.

A provider may send without end, and a blocking call that was given up goes on in its thread. No client library limits
the size of a body.
"""

import sys
from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

from stepcraft.concurrency import overdue

MAX_REPLY = 32_000_000
"""The most bytes of a reply."""

_READ_S = 3_600
"""How long a provider may think before it replies, and between two parts of its reply."""


def openai_clients() -> dict[str, Any]:
    """The arguments of ChatOpenAI that bound its replies."""
    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient, Timeout  # noqa: PLC0415 - slow to import

    timeout = Timeout(_READ_S, connect=10)
    return {
        "timeout": timeout,
        "http_client": DefaultHttpxClient(timeout=timeout, event_hooks={"response": [_bound]}),
        "http_async_client": DefaultAsyncHttpxClient(timeout=timeout, event_hooks={"response": [_abound]}),
    }


def _bound(response: Any) -> None:  # noqa: ANN401 - of httpx or of httpx2, whichever openai uses
    response.stream = _bounded(_library(response))(response.stream)


async def _abound(response: Any) -> None:  # noqa: ANN401 - as above; awaited by the client
    response.stream = _async_bounded(_library(response))(response.stream)


def _library(response: Any) -> Any:  # noqa: ANN401 - as above
    return sys.modules[type(response).__module__.partition(".")[0]]


def _counted(httpx: Any, received: int, chunk: bytes) -> int:  # noqa: ANN401 - as above
    if received + len(chunk) > MAX_REPLY:
        raise httpx.ReadError(f"the reply is longer than {MAX_REPLY:,} bytes")
    if overdue():
        raise httpx.ReadTimeout("nobody waits for the reply any more")
    return received + len(chunk)


@cache
def _bounded(httpx: Any) -> type[Any]:  # noqa: ANN401 - as above
    class Bounded(httpx.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:  # noqa: ANN401 - as above
            self.stream = stream

        def __iter__(self) -> Iterator[bytes]:
            received = 0
            for chunk in self.stream:
                received = _counted(httpx, received, chunk)
                yield chunk

        def close(self) -> None:
            self.stream.close()

    return Bounded


@cache
def _async_bounded(httpx: Any) -> type[Any]:  # noqa: ANN401 - as above
    class AsyncBounded(httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:  # noqa: ANN401 - as above
            self.stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            received = 0
            async for chunk in self.stream:
                received = _counted(httpx, received, chunk)
                yield chunk

        async def aclose(self) -> None:
            await self.stream.aclose()

    return AsyncBounded
