"""What of the replies of model nodes is worth keeping for later runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.cache.base import BaseCache, FullKey

from stepcraft.llm.budget import no_usage

Writes = Iterable[tuple[str, Any]]
Pairs = Mapping[FullKey, tuple[Any, int | None]]


class GoodReplies(BaseCache[Any]):
    """A cache behind which a failed step is not kept, and a kept one costs a later run no calls."""

    def __init__(self, kept: BaseCache[Any]) -> None:
        super().__init__(serde=kept.serde)
        self.kept = kept

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """What is kept under these keys."""
        return self.kept.get(keys)

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """As `get`."""
        return await self.kept.aget(keys)

    def set(self, pairs: Pairs) -> None:
        """Keep what went well."""
        self.kept.set(_good(pairs))

    async def aset(self, pairs: Pairs) -> None:
        """As `set`."""
        await self.kept.aset(_good(pairs))

    def clear(self, namespaces: Sequence[tuple[str, ...]] | None = None) -> None:
        """Forget all, or what is in some namespaces."""
        self.kept.clear(namespaces)

    async def aclear(self, namespaces: Sequence[tuple[str, ...]] | None = None) -> None:
        """As `clear`."""
        await self.kept.aclear(namespaces)


_CLOCKS = ("started", "step_started")
"""What they say holds in one run of one process."""


def _good(pairs: Pairs) -> Pairs:
    return {key: (_free(writes), ttl) for key, (writes, ttl) in pairs.items() if not _warned(writes)}


def _warned(writes: Writes) -> bool:
    """A step that failed, or was not done for want of calls or time, says so."""
    return any(channel == "warnings" and value for channel, value in writes)


def _free(writes: Writes) -> list[tuple[str, Any]]:
    return [
        (channel, no_usage() if channel == "usage" else value)
        for channel, value in writes
        if channel not in _CLOCKS
    ]
