"""The passages of a corpus in a Weaviate collection."""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.utils.iter import batch_iterate
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter

from stepcraft.errors import MemoryFailure
from stepcraft.index import MOST_RESULTS, Entry, Hit, check_search
from stepcraft.memory.weaviate.collection import (
    BATCH,
    Hits,
    OpenCollection,
    vector_of,
    words_of,
)
from stepcraft.memory.weaviate.collection import Item as Stored
from stepcraft.memory.weaviate.connection import Objects, T
from stepcraft.memory.weaviate.schema import Layout
from stepcraft.sources.shared.passages import (
    AGAIN,
    FILL,
    Item,
    PageRecord,
    SharedPassages,
    as_filters,
    digest_in,
    version_in,
)

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

ALPHA = 0.3
"""The default weight of vectors in a hybrid search."""

_SHOWN = ("path", "title", "place", "text", "version", "tags")
_LAYOUT = Layout(
    holds="passages",
    content=(*_SHOWN, "number", "digest", "mark", "passages"),
    shown=_SHOWN,
    exact=("path", "version", "digest", "tags"),
    lists=("tags",),
    numbers=("number", "passages"),
)

_NAMESPACE = uuid.UUID("5a6f2b8e-9a1d-5c33-8a60-2f4d1c7e9b05")
_RECORD = "00000000-"
"""The prefix of record ids, which sorts them first so that they can be listed."""

_BUILDING = PageRecord(path="", tags=(), version="building", mark="", passages=0)
"""A record that belongs to no page. It exists during a build, and remains if one is cut short."""
_IS_BUILDING = Filter.by_property("version").equal(_BUILDING.version)

_CHECKED_FOR = 5.0
"""The number of seconds for which searches remember whether a build is running."""


class WeaviatePassages(SharedPassages):
    """The passages of a corpus in a Weaviate collection.

    The collection also contains a record for each page, which has no text and no vector and is
    therefore never found. During a build, after an unfinished one, or if a search finds two
    versions of a page, searches check the records of the pages that they find.

    Args:
        url: As for `WeaviateMemory`.
        embeddings: As for `open_memory`.
        tags: The tags of the pages to store.
        create: Whether to create a missing collection, so that it can be filled.

    Raises:
        BadInput: The URL is malformed, or there is no such collection.
        MemoryFailure: The server cannot be used, or the collection has another layout or other
            embeddings.
    """

    def __init__(
        self,
        url: str,
        *,
        embeddings: "str | Embeddings | None" = None,
        tags: Mapping[str, str] | None = None,
        create: bool = False,
    ) -> None:
        super().__init__(url, tags or {})
        self._objects = OpenCollection(
            url, _LAYOUT, embeddings=embeddings, create=create, fill=FILL, again=AGAIN
        )
        self.embedder = self._objects.embedder
        self._is_building, self._checked_at = True, -_CHECKED_FOR
        self._check(self._objects.embeddings, create=create)

    def search(
        self, query: str, k: int, *, alpha: float | None, where: Mapping[str, str]
    ) -> list[Hit]:
        """Return the k best-matching passages, using Weaviate's vector index and BM25."""
        alpha = ALPHA if alpha is None else alpha
        check_search(k, alpha)
        path, tags = as_filters(where)
        filters = [Filter.by_property("tags").contains_all(tags)] if tags else []
        if path:
            filters.append(Filter.by_property("path").like(f"{path}*"))
        total = 0

        def published(objects: Objects, hits: Hits) -> Hits:
            nonlocal total
            total = len(hits)  # of which some may only match the path as a pattern
            hits = [hit for hit in hits if hit[0].properties["path"].startswith(path)]
            return self._published(objects, hits, k)

        # Passages of versions that are being stored or deleted also count towards the limit.
        limit = min(2 * k, MOST_RESULTS)
        while True:
            hits = self._objects.search(
                query,
                limit,
                alpha=alpha,
                filters=Filter.all_of(filters) if filters else None,
                refine=published,
            )
            if len(hits) >= k or total < limit or limit == MOST_RESULTS:
                return [_hit(item, score) for item, score in hits[:k]]
            limit = min(4 * limit, MOST_RESULTS)

    def beside(self, key: str) -> list[Hit]:
        """Return the passages directly before and after the one with this id, in the same page."""
        for item in self._objects.fetch([key]):
            version, number = item.properties["version"], item.properties["number"]
            near = Filter.by_property("version").equal(version) & (
                Filter.by_property("number").contains_any([number - 1, number + 1])
            )
            items = self._objects.matching(near, 2)
            items = sorted(items, key=lambda each: each.properties["number"])
            return [_hit(each, 0.0) for each in items]
        return []

    def close(self) -> None:
        """Close the connection. This can safely be called twice."""
        self._objects.close()

    @contextmanager
    def building(self) -> Generator[None]:
        """Let searches know about the build until it is finished."""
        self._announce()
        yield
        self._objects.delete([_record_id(_BUILDING.path, self.tags)])

    def _announce(self) -> None:
        """Let searches know that a build is running."""
        self._insert([_BUILDING._replace(tags=self.tags)], _record_object)

    def is_empty(self) -> bool:
        """Return whether nothing is stored."""
        return not self._count()

    def records(self) -> Iterator[PageRecord]:
        """Return the records of all pages."""
        records = (_record(item.properties) for item in takewhile(_is_record, self._objects))
        return (each for each in records if each.path)

    def tidy(self) -> bool:
        """Delete leftovers from killed builders, and return whether pages must be read again.

        If the number of objects matches the records, they are not examined one by one. Passages
        with other tags are kept, since another builder may be about to publish them.
        """
        records = self._records.values()
        if self._count() == len(records) + sum(each.passages for each in records):
            return False
        self.marks()
        versions = {each.version: each for each in self._records.values()}
        counts, left = Counter[str](), list[str]()
        for item in dropwhile(_is_record, self._objects):
            version = item.properties["version"]
            if version in versions:
                counts[version] += 1
            elif (item.properties["tags"] or []) == self.tags:
                left.append(str(item.uuid))
        self._objects.delete(left)
        lost = [
            each
            for version, each in versions.items()
            if counts[version] < each.passages and each.tags == self.tags
        ]
        self._drop(lost)
        return bool(lost)

    def _count(self) -> int:
        return self._objects.count() - self._objects.count(_IS_BUILDING)

    def _published(self, objects: Objects, hits: Hits, k: int) -> Hits:
        """Return the first k hits that belong to the page version named in its record."""
        if time.monotonic() > self._checked_at + _CHECKED_FOR:
            marks = objects.query.fetch_objects(filters=_IS_BUILDING, limit=1).objects
            self._is_building, self._checked_at = bool(marks), time.monotonic()
        pages = {_page_id(item) for item, _ in hits[:k]}
        versions = {item.properties["version"] for item, _ in hits[:k]}
        if not self._is_building and len(pages) == len(versions):
            return hits
        published: list[tuple[Any, float]] = []
        for some in batch_iterate(max(2 * k, len(hits) // 10), hits):
            records = {_page_id(item) for item, _ in some}
            reply = objects.query.fetch_objects(
                filters=Filter.by_id().contains_any([*records]),
                limit=len(records),
                return_properties=["version"],
            )
            current = {item.properties["version"] for item in reply.objects}
            published += [hit for hit in some if hit[0].properties["version"] in current]
            if len(published) >= k:
                break
        return published

    def _vectors(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        vectors: dict[str, bytes] = {}
        for part in batch_iterate(BATCH, digests):
            missing, is_more = {*part}, True
            while missing and is_more:  # the objects may be many copies of a few texts
                same = Filter.by_property("digest").contains_any([*missing])
                items = self._objects.matching(same, BATCH, vectors=True)
                for item in items:
                    missing.discard(item.properties["digest"])
                    if (vector := vector_of(item)).any():
                        vectors[item.properties["digest"]] = vector.tobytes()
                is_more = len(items) == BATCH
        return vectors

    def _store(
        self, items: Sequence[Item], records: Sequence[PageRecord], replaced: Sequence[str]
    ) -> None:
        self._announce()  # again, since a builder with the same tags may have ended
        self._insert(items, partial(_object, tags=self.tags))
        self._insert(records, _record_object)
        self._delete_versions(replaced)

    def _insert(self, values: Sequence[T], as_object: Callable[[T], Stored]) -> None:
        for failure in self._objects.insert(values, as_object):
            raise MemoryFailure(f"{self.name} refused {failure.where}: {failure.reason}")

    def _drop(self, records: Sequence[PageRecord]) -> None:
        self._objects.delete(_record_id(each.path, each.tags) for each in records)
        self._delete_versions([each.version for each in records if each.version])

    def _delete_versions(self, versions: Sequence[str]) -> None:
        for part in batch_iterate(self.batch, versions):
            self._objects.delete_matching(Filter.by_property("version").contains_any(part))


def _is_record(item: Any) -> bool:  # noqa: ANN401 - of the client
    return str(item.uuid).startswith(_RECORD)


def _page_id(item: Any) -> str:  # noqa: ANN401 - of the client
    """Return the id of the record of a passage's page."""
    return _record_id(item.properties["path"], item.properties["tags"] or ())


def _id(entry: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, entry))


def _record_id(path: str, tags: Sequence[str]) -> str:
    return _RECORD + _id("\0".join([path, *tags]))[len(_RECORD) :]


def _record_object(record: PageRecord) -> Stored:
    return DataObject(properties=record._asdict(), uuid=_record_id(record.path, record.tags))


def _record(values: Mapping[str, Any]) -> PageRecord:
    return PageRecord(
        path=values["path"],
        tags=values["tags"] or [],
        version=values["version"] or "",
        mark=values["mark"] or "",
        passages=values["passages"] or 0,
    )


def _object(item: Item, tags: Sequence[str]) -> Stored:
    entry, vector = item
    return DataObject(
        properties={
            **entry.payload,
            "text": entry.text.removeprefix(f"{entry.payload['title']}\n"),
            "version": version_in(entry.id),
            "digest": digest_in(entry.id),
            "tags": tags,
            **words_of(entry.text),
        },
        uuid=_id(entry.id),
        vector=np.frombuffer(vector, np.float32).tolist() if vector else None,
    )


def _hit(item: Any, score: float) -> Hit:  # noqa: ANN401 - of the client
    values = item.properties
    return Hit(Entry(str(item.uuid), f"{values['title']}\n{values['text']}", values), score)
