"""GroupedIndex, a LocalIndex whose entries belong to groups, such as the passages of a file."""

import json
import sqlite3
import time
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from stepcraft.errors import Failed
from stepcraft.index._file import MEMORY, Entry, entries_where
from stepcraft.index.local import LocalIndex

_POLL_S = 0.1


class Complete(NamedTuple):
    """The ids of all entries in a group, and a mark that identifies its contents' version."""

    mark: str
    ids: Collection[str]


def in_group(group: str, name: str) -> str:
    """Return the id of an entry in a group."""
    return f"{group}:{name}"


class GroupedIndex(LocalIndex):
    """A LocalIndex whose entries belong to groups; `in_group` builds their ids.

    The mark of a group is empty until the group is complete. If the process is killed while filling
    it, filling it again does not embed texts that are already stored.
    """

    _is_grouped = True
    batch = 4000
    """The recommended number of entries to store at once."""

    @contextmanager
    def filling(self, *, wait: bool = True) -> Generator[bool]:
        """Let only one process at a time fill the file.

        Args:
            wait: Whether to wait for another process that is filling the file. If not, the context
                manager yields False in that case, and the caller should not fill anything.
        """
        if self.path == MEMORY:
            yield True
            return
        place, lock = f"{self.path}.lock", None
        with ExitStack() as opened:
            while True:
                try:
                    if not lock:
                        lock = sqlite3.connect(place, timeout=0, isolation_level=None)
                        opened.callback(lock.close)
                    lock.execute("BEGIN EXCLUSIVE")
                    break
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error):  # a folder that is not writable
                        break
                    if not wait:
                        yield False
                        return
                    time.sleep(_POLL_S)
            yield True

    def marks(self) -> dict[str, str]:
        """Return the mark of each group, which is empty if the group is incomplete."""
        with self._read() as connection:
            return dict(connection.execute("SELECT name, mark FROM groups"))

    def numbered(self, group: str, numbers: Iterable[int]) -> list[Entry]:
        """Return a group's entries whose payload has one of the given numbers, in their order."""
        where = (
            "id > ? AND id < ? AND json_extract(payload, '$.number') IN"
            " (SELECT value FROM json_each(?)) ORDER BY json_extract(payload, '$.number')"
        )
        with self._read() as connection:
            values = f"{group}:", f"{group};", json.dumps(list(numbers))
            return [entry for _, entry in entries_where(connection, where, *values)]

    def fill(self, entries: Iterable[Entry], complete: Mapping[str, Complete]) -> Sequence[Failed]:
        """Store entries like `put`, and delete all other entries from the groups in `complete`.

        Return the entries that were refused, with the reasons. If their group is complete, the
        reasons are also appended to its mark.

        Raises:
            MemoryFailure: The file cannot be written, or the embedder failed; nothing was stored.
        """
        entries = list(entries)

        def finish(connection: sqlite3.Connection, failed: Sequence[Failed]) -> None:
            connection.executemany(
                "DELETE FROM entries WHERE id > ? AND id < ?"
                " AND id NOT IN (SELECT value FROM json_each(?))",
                (
                    (f"{name}:", f"{name};", json.dumps(list(group.ids)))
                    for name, group in complete.items()
                ),
            )
            marks = {entry.id.partition(":")[0]: "" for entry in entries}
            marks |= {name: group.mark for name, group in complete.items()}
            for failure in failed:
                name = failure.where.partition(":")[0]
                if marks[name]:
                    marks[name] += f"{failure.reason} "
            connection.executemany(
                "INSERT INTO groups VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET mark = excluded.mark",
                marks.items(),
            )

        return self.put(entries, then=finish).failed

    def forget(self, groups: Iterable[str]) -> None:
        """Delete groups with all their entries."""
        with self._written() as connection:
            connection.executemany(
                "DELETE FROM groups WHERE name = ?", ((name,) for name in groups)
            )
