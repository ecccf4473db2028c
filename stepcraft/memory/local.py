"""A memory in a SQLite file, or held in RAM if its procedures come from a text file."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from stepcraft.errors import AddReport, BadInput, MemoryFailure, ReadOnlyMemory
from stepcraft.index import Embedder, Entry, LocalIndex, recorded_embeddings
from stepcraft.memory.batches import BatchedMemory, replacement
from stepcraft.memory.files import read_all
from stepcraft.memory.procedure import Found, Procedure, checked_tags, standard_id
from stepcraft.memory.protocol import ALPHA
from stepcraft.memory.urls import is_text
from stepcraft.models.embeddings import resolve_embeddings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


_log = logging.getLogger(__name__)


class LocalMemory(BatchedMemory):
    """Procedures in a single SQLite file, for several threads and processes at once.

    Args:
        path: The file, or ":memory:" to use none. The procedures in a JSONL or CSV file are read
            into memory and cannot be changed.
        embeddings: As for `open_memory`.
        create: Whether to create a missing file.
        name: The name of the memory, by default the path.

    Raises:
        BadInput: The embedding model is unknown, or a text file contains no procedure.
        MemoryFailure: The file cannot be opened, or was made with another model.
    """

    batch = 1000
    large = 500_000
    """Opening a memory with at least this many procedures logs a warning that suggests Weaviate."""

    def __init__(
        self,
        path: str | Path,
        *,
        embeddings: "str | Embeddings | None" = None,
        create: bool = True,
        name: str = "",
    ) -> None:
        self.name = name or str(path)
        is_read = is_text(Path(path))
        procedures = read_all(path) if is_read else []
        place = ":memory:" if is_read else path
        embedder = recorded_embedder(self.name, embeddings, recorded_embeddings(place))
        self._index = LocalIndex(place, embedder, create=create or is_read)
        self.read_only = self._index.read_only
        if is_read:
            for failure in self.add(procedures).failed:
                _log.warning("%s: %s is left out: %s", self.name, failure.where, failure.reason)
            self.read_only = True
        if (count := self.count()) >= self.large:
            _log.warning(
                "%s holds %d procedures, whose vectors are all kept in this process; Weaviate "
                "(weaviate://host:8080/Collection) suits a memory of this size better",
                self.name,
                count,
            )

    def _update_stored(
        self, id: str, new_version: Callable[[Procedure | None], Procedure]
    ) -> Procedure:
        """Write a new version, recomputing it if another process has written one meanwhile."""
        self._check_writable()

        def new_entry(entry: Entry | None) -> Entry:
            return _entry(new_version(_procedure(entry) if entry else None))

        return _procedure(self._index.update(standard_id(id), new_entry))

    def search(
        self,
        query: str,
        k: int = 3,
        *,
        alpha: float | None = None,
        where: Mapping[str, str] | None = None,
    ) -> list[Found]:
        """Return the k procedures that fit best."""
        tags = checked_tags(where or {})
        hits = self._index.search(query, k, alpha=ALPHA if alpha is None else alpha, tags=tags)
        return [Found(_procedure(hit.entry), hit.score) for hit in hits]

    def get(self, id: str) -> Procedure | None:
        """Return the procedure with this id, or None."""
        entry = self._index.get(standard_id(id))
        return _procedure(entry) if entry else None

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the given ids existed."""
        self._check_writable()
        return self._index.delete(map(standard_id, ids))

    def has_deleted(self, id: str) -> bool:
        """Return whether a procedure with this id was ever deleted from the file."""
        return self._index.has_deleted(standard_id(id))

    def count(self) -> int:
        """Return the number of procedures."""
        return self._index.count()

    def __iter__(self) -> Iterator[Procedure]:
        """Iterate over all procedures in the order in which they were added."""
        return (_procedure(entry) for entry in self._index)

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        self._index.close()

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyMemory(
                f"{self.name} can be searched, not changed; import procedures into a .db file that "
                "may be written"
            )

    def _put(self, procedures: list[Procedure]) -> AddReport:
        self._check_writable()
        return self._index.put(
            map(_entry, procedures),
            merge=lambda stored, added: _entry(replacement(_procedure(stored), _procedure(added))),
        )


def _entry(procedure: Procedure) -> Entry:
    return Entry(procedure.id, procedure.text(), procedure.to_dict())


def _procedure(entry: Entry) -> Procedure:
    return Procedure.of_kept(entry.payload)


def recorded_embedder(
    place: str, embeddings: "str | Embeddings | None", recorded: str | None
) -> Embedder | None:
    """Return the requested embedding model, or else the one that a memory was made with."""
    if embeddings is not None or recorded is None:
        return resolve_embeddings(embeddings)
    if recorded == "wordllama" and not find_spec("wordllama"):
        _log.warning(
            "%s was made with wordllama, which is not installed here: it is searched by words, and "
            "nothing can be added",
            place,
        )
        return None
    try:
        return resolve_embeddings(recorded)
    except BadInput as error:
        raise MemoryFailure(
            f"{place} was made with embeddings {recorded!r:.200} ({error}); give them as "
            "embeddings=, or 'none' to search by words alone"
        ) from error
