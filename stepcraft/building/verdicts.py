"""A file that keeps what models said of procedures, so that the same command does not ask again."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from stepcraft.errors import MemoryFailure
from stepcraft.index import Entry, LocalIndex


class VerdictFile:
    """Verdicts by their keys, in a SQLite file that several processes may use.

    Args:
        path: The file; by default one in the user's cache folder. It holds texts of procedures, so
            that one is for its owner alone.

    Raises:
        MemoryFailure: The file cannot be opened.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = LocalIndex(path or _default_file())

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the verdict of a key, or None."""
        entry = self._file.get(key)
        return dict(entry.payload) if entry else None

    def add(self, key: str, verdict: Mapping[str, Any]) -> None:
        """Store a verdict until the file is deleted."""
        self._file.put([Entry(key, "", verdict)])

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _default_file() -> Path:
    folder = user_cache_path("stepcraft", appauthor=False) / "duplicates"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MemoryFailure(
            f"the folder {folder} for verdicts cannot be made ({error.strerror}); set "
            "XDG_CACHE_HOME to a folder that can be written"
        ) from error
    path = folder / "verdicts.db"
    with suppress(OSError):  # a file of somebody else's is refused or not when it is opened
        folder.chmod(0o700)
        path.touch(mode=0o600)
    return path
