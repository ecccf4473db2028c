"""GroupedIndex: a LocalIndex whose entries belong to groups, such as the passages of one file."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepcraft.index import Changes, Embedder, Entry, LocalIndex
from stepcraft.index import _rows as rows

_TABLE = "CREATE TABLE IF NOT EXISTS groups (name TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID"


@dataclass(frozen=True)
class Complete:
    """All that a group now holds, and the mark that says as of when."""

    mark: str
    ids: Collection[str]


def in_group(group: str, name: str) -> str:
    """The id of an entry of a group."""
    return f"{group}:{name}"


class GroupedIndex(LocalIndex):
    """A LocalIndex whose entries belong to groups; the id of an entry names its group (see `in_group`).

    A group has a mark once it is complete. One that a process was killed in has an empty one, so that whoever fills
    it again can tell; what is in already is not embedded again.

    Args:
        path: the file, made when missing; ":memory:" for none.
        embedder: as in LocalIndex.

    Raises:
        MemoryFailure: the file cannot be opened, or was made with another embedder.
    """

    def __init__(self, path: str | Path, embedder: Embedder | None = None) -> None:
        super().__init__(path, embedder)
        if not self.read_only:
            with self._writing():
                self._connection.execute(_TABLE)

    def marks(self) -> dict[str, str]:
        """The mark of each group, empty if it is not complete."""
        with self._reading():
            return dict(self._connection.execute("SELECT name, mark FROM groups"))

    def mark(self, marks: Mapping[str, str]) -> None:
        """Give complete groups other marks."""
        with self._writing():
            self._mark(marks)

    def fill(self, entries: Sequence[Entry], complete: Mapping[str, Complete]) -> Changes:
        """Keep entries as `put` does; of groups that are complete now, forget what else they held. All or nothing.

        Raises:
            MemoryFailure: as `put`.
        """
        unique, _ = rows.unique(entries)
        with self._reading():
            kept = rows.kept(self._connection, unique)
        vectors = self._embedded(rows.reworded(unique.values(), kept))
        with self._writing():
            begun = self._begun(complete)
            self._mark({entry.id.partition(":")[0]: "" for entry in entries})
            changes = self._write(unique, vectors)
            self._remove(stale for name in begun for stale in self._ids(name).difference(complete[name].ids))
            self._mark({name: group.mark for name, group in complete.items()})
        return changes

    def forget(self, groups: Iterable[str]) -> None:
        """Forget groups with all their entries."""
        names = list(groups)
        with self._writing():
            self._remove(member for name in names for member in self._ids(name))
            self._connection.executemany("DELETE FROM groups WHERE name = ?", ((name,) for name in names))

    def _begun(self, groups: Iterable[str]) -> list[str]:
        """Those of the groups that may hold entries already."""
        found = self._connection.execute(
            "SELECT name FROM groups WHERE name IN (SELECT value FROM json_each(?))",
            (json.dumps(list(groups)),),
        )
        return [name for (name,) in found]

    def _ids(self, group: str) -> set[str]:
        """Of the entries of a group: ";" is the character after ":"."""
        found = self._connection.execute(
            "SELECT id FROM entries WHERE id > ? AND id < ?", (f"{group}:", f"{group};")
        )
        return {name for (name,) in found}

    def _remove(self, ids: Iterable[str]) -> None:
        if found := rows.kept(self._connection, ids).values():
            rows.remove(self._connection, found)

    def _mark(self, marks: Mapping[str, str]) -> None:
        self._connection.executemany("INSERT OR REPLACE INTO groups VALUES (?, ?)", marks.items())
