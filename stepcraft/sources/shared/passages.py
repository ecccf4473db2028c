"""The passages of a corpus on a server.

A passage belongs to one version of a page, and never changes. The page's record names the version
that searches find, so that each search sees a page in a single state: the passages of a new version
are stored first, then the record is replaced, then the old passages are deleted.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple, TypeAlias

from stepcraft.concurrency import in_thread
from stepcraft.errors import Failed, MemoryFailure
from stepcraft.index import Complete, Embedder, Entry, Hit, check_recorded, embedded
from stepcraft.memory.procedure import checked_tags

FILL = "fill it with `stepcraft source build corpus:PATH --into URL`"
AGAIN = "`stepcraft source build corpus:PATH --into OTHER --embeddings NAME`"

PATH = "path"
"""The one filter that is not a tag: it selects paths by their prefix."""


class PageRecord(NamedTuple):
    """The stored record of a page, apart from its passages."""

    path: str
    tags: Sequence[str]
    version: str
    """The prefix of its passages' ids, or "" if there are none."""
    mark: str
    passages: int


Item: TypeAlias = tuple[Entry, bytes]
"""A passage with the id `version:digest of title and text`, and its unit vector as 32-bit floats,
or b"" without an embedder.
"""


class SharedPassages(ABC):
    """The passages of a corpus on a server, implementing `stepcraft.sources.corpus.update.Index`.

    Args:
        name: The URL.
        tags: The tags of the pages to store. Pages with other tags are neither listed nor deleted.
    """

    batch = 4000
    embedder: Embedder | None
    """The embedding model, set by the subclass."""

    def __init__(self, name: str, tags: Mapping[str, str]) -> None:
        self.name = name
        self.tags = _as_texts(tags)
        self._records: dict[tuple[str, ...], PageRecord] = {}
        self._is_new = False
        self._storing: Future[None] | None = None

    @abstractmethod
    def search(
        self, query: str, k: int, *, alpha: float | None, where: Mapping[str, str]
    ) -> list[Hit]:
        """Return the k best-matching passages, with title, path and place in each payload."""

    @abstractmethod
    def beside(self, key: str) -> list[Hit]:
        """Return the passages directly before and after the one with this id, in the same page."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection. This can safely be called twice."""

    def _check(self, made_with: str, *, create: bool) -> None:
        """Reject embeddings that differ from the corpus's own, and missing ones during a build.

        Raises:
            MemoryFailure: The corpus was made with other embeddings.
        """
        check_recorded(self.name, self.embedder, made_with, AGAIN)
        if create and not self.embedder and made_with != "none":
            raise MemoryFailure(
                f"{self.name} was made with embeddings {made_with!r}: name them to build it"
            )

    @abstractmethod
    def building(self) -> AbstractContextManager[object]:
        """Surround a build, so that searches and other builders can take it into account."""

    @abstractmethod
    def tidy(self) -> bool:
        """Delete leftovers from killed builders, and return whether pages must be read again."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether nothing is stored."""

    @abstractmethod
    def records(self) -> Iterable[PageRecord]:
        """Return the records of all pages."""

    @abstractmethod
    def _vectors(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored vectors for the given text digests."""

    @abstractmethod
    def _store(
        self, items: Sequence[Item], records: Sequence[PageRecord], replaced: Sequence[str]
    ) -> None:
        """Store passages, then the records of pages, then delete replaced versions."""

    @abstractmethod
    def _drop(self, records: Sequence[PageRecord]) -> None:
        """Delete pages: first their records, then their passages."""

    def marks(self) -> dict[str, str]:
        """Return the marks of the pages with the tags of this builder, by path."""
        self._records = {(each.path, *each.tags): each for each in self.records()}
        self._is_new = self.is_empty()
        return {each.path: each.mark for each in self._records.values() if each.tags == self.tags}

    def fill(self, entries: Iterable[Entry], complete: Mapping[str, Complete]) -> Sequence[Failed]:
        """Store entries, publish complete pages, and return the entries that were refused.

        Text that is already stored for any page is not embedded again. These entries are stored
        while the next ones are read; `finish` waits until the server is done.

        Raises:
            MemoryFailure: The server or the embedding model failed. Anything already stored is
                kept.
        """
        items, failed = self._embedded([*{each.id: each for each in entries}.values()])
        refused = {each.where: f"{each.reason} " for each in failed}
        records = [
            PageRecord(
                path=path,
                tags=self.tags,
                version=version_in(next(iter(page.ids), "")),
                mark=page.mark + "".join(refused.get(id_, "") for id_ in page.ids),
                passages=len(set(page.ids) - refused.keys()),
            )
            for path, page in complete.items()
        ]
        keys = [(each.path, *each.tags) for each in records]
        before = {self._records[key].version for key in keys if key in self._records}
        replaced = [*before - {each.version for each in records} - {""}]
        self._records |= zip(keys, records, strict=True)
        self.finish()
        self._storing = in_thread(partial(self._store, items, records, replaced))
        return failed

    def finish(self) -> None:
        """Wait until the server has stored everything it was sent.

        Raises:
            MemoryFailure: The server failed.
        """
        if self._storing:
            storing, self._storing = self._storing, None
            storing.result()

    def forget(self, groups: Collection[str]) -> None:
        """Delete pages by path."""
        self.finish()
        keys = [(path, *self.tags) for path in groups]
        self._drop([self._records.pop(key) for key in keys])

    def _embedded(self, entries: Sequence[Entry]) -> tuple[list[Item], list[Failed]]:
        """Return the entries with their vectors, and the reasons why others have none."""
        if not self.embedder:
            return [(each, b"") for each in entries], []
        stored: Mapping[str, bytes] = {}
        if entries and not self._is_new:
            stored = self._vectors([digest_in(each.id) for each in entries])
        vectors = {
            each.text: stored[digest]
            for each in entries
            if (digest := digest_in(each.id)) in stored
        }
        new = [each.text for each in entries if each.text not in vectors]
        result = embedded(self.embedder, new, len(next(iter(vectors.values()), b"")))
        vectors |= result.vectors
        failed = [
            Failed(each.id, result.refused[each.text])
            for each in entries
            if each.text in result.refused
        ]
        return [(each, vectors[each.text]) for each in entries if each.text in vectors], failed


def version_in(id: str) -> str:  # noqa: A002 - as the field
    """Return the version in the id of an entry."""
    return id.partition(":")[0]


def digest_in(id: str) -> str:  # noqa: A002 - as the field
    """Return the digest in the id of an entry."""
    return id.partition(":")[2]


def as_filters(where: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the path prefix in a filter, and the tags as they are stored.

    Raises:
        BadInput: The filter is not a mapping of strings.
    """
    tags = checked_tags(where)
    return tags.pop(PATH, ""), _as_texts(tags)


def _as_texts(tags: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(tags.items())]
