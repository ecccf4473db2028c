"""A file that keeps what models said of procedures, so that a command that is started again does not ask again."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from langgraph.cache.base import BaseCache, FullKey, Namespace
from platformdirs import user_cache_path

from stepcraft.concurrency import in_thread
from stepcraft.errors import MemoryFailure
from stepcraft.index import Entry, LocalIndex


class VerdictFile(BaseCache[dict[str, Any]]):
    """A cache in a SQLite file that several processes may use. Values are JSON, and are kept until the file is deleted.

    Args:
        path: The file; by default one in the user's cache folder. It holds texts of procedures, so that one is for its owner
            alone.

    Raises:
        MemoryFailure: The file cannot be opened.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self._file = LocalIndex(path or _own_file())

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, dict[str, Any]]:
        """The values of those keys that have one."""
        entries = {key: self._file.get(_name(key)) for key in keys}
        return {key: dict(entry.payload) for key, entry in entries.items() if entry}

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, dict[str, Any]]:
        """As `get`."""
        return await asyncio.wrap_future(in_thread(lambda: self.get(keys)))

    def set(self, pairs: Mapping[FullKey, tuple[dict[str, Any], int | None]]) -> None:
        """Store values; how long they are to be kept is ignored."""
        self._file.put([Entry(_name(key), "", value) for key, (value, _) in pairs.items()])

    async def aset(self, pairs: Mapping[FullKey, tuple[dict[str, Any], int | None]]) -> None:
        """As `set`."""
        await asyncio.wrap_future(in_thread(lambda: self.set(pairs)))

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Delete the values of some namespaces, or all."""
        starts = None if namespaces is None else tuple(f"{'/'.join(one)}/" for one in namespaces)
        self._file.delete([one.id for one in self._file if starts is None or one.id.startswith(starts)])

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """As `clear`."""
        await asyncio.wrap_future(in_thread(lambda: self.clear(namespaces)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _name(key: FullKey) -> str:
    namespace, name = key
    return "/".join([*namespace, name])


def _own_file() -> Path:
    folder = user_cache_path("stepcraft", appauthor=False) / "duplicates"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MemoryFailure(
            f"the folder {folder} for verdicts cannot be made ({error.strerror}); set XDG_CACHE_HOME to a folder that can be "
            "written"
        ) from error
    path = folder / "verdicts.db"
    with suppress(OSError):  # a file of somebody else's is refused or not when it is opened
        folder.chmod(0o700)
        path.touch(mode=0o600)
    return path
