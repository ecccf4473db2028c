"""The cache of model replies: only steps that succeeded are stored, and a cached step costs no calls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.cache.base import BaseCache, FullKey

from stepcraft.llm.budget import no_usage

Pairs = Mapping[FullKey, tuple[Any, int | None]]


class ReplyCache(BaseCache[Any]):
    """A LangGraph node cache in front of another, which filters what is stored.

    Steps with a warning (a failed call, a limit that was reached) are not stored. Of the others the usage is stored
    as zero and the clocks of the run are left out, as they hold for one run only.
    """

    def __init__(self, cache: BaseCache[Any]) -> None:
        super().__init__(serde=cache.serde)
        self.cache = cache

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """The stored writes of these keys."""
        return self.cache.get(keys)

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """As `get`."""
        return await self.cache.aget(keys)

    def set(self, pairs: Pairs) -> None:
        """Store the writes of the steps that succeeded."""
        self.cache.set(_storable(pairs))

    async def aset(self, pairs: Pairs) -> None:
        """As `set`."""
        await self.cache.aset(_storable(pairs))

    def clear(self, namespaces: Sequence[tuple[str, ...]] | None = None) -> None:
        """Delete everything, or what is stored in some namespaces."""
        self.cache.clear(namespaces)

    async def aclear(self, namespaces: Sequence[tuple[str, ...]] | None = None) -> None:
        """As `clear`."""
        await self.cache.aclear(namespaces)


def _storable(pairs: Pairs) -> Pairs:
    return {
        key: (_reusable(writes), ttl)
        for key, (writes, ttl) in pairs.items()
        if not any(channel == "warnings" and value for channel, value in writes)
    }


def _reusable(writes: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [
        (channel, no_usage() if channel == "usage" else value)
        for channel, value in writes
        if channel not in {"started", "step_started"}
    ]
