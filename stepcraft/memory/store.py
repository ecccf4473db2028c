"""A memory in a LangGraph store (`BaseStore`), such as the one that a server gives its graphs."""

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from datetime import datetime
from itertools import islice
from threading import Lock
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchItem

from stepcraft.errors import BadInput, Failed, MemoryFailure, StepcraftError
from stepcraft.index import check_search, refusals
from stepcraft.memory.batches import ServedMemory
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Found, Procedure, checked_tags, is_uuid, standard_id
from stepcraft.memory.protocol import ALPHA
from stepcraft.text.clean import clean

NAMESPACE = "procedures"
"""The default namespace."""

CANDIDATES = 200
"""The minimum number of results that the vector and word searches each contribute to the ranking.
"""

_PAGE = 1000


class StoreMemory(ServedMemory):
    """Procedures in a namespace of a LangGraph store; items that are not procedures are ignored.

    Search is hybrid if the store has a vector index, and otherwise by words. The store cannot
    search by words itself, so the whole namespace is read for each search unless `alpha` is 1.
    Namespaces below this one are separate memories.

    Args:
        store: The store.
        namespace: The parts of the namespace joined by "/", such as "team/recipes"; "procedures" if
            empty.

    Raises:
        BadInput: The namespace is invalid.
    """

    batch = 100

    def __init__(self, store: BaseStore, namespace: str = "") -> None:
        self._store = store
        self._namespace = checked_namespace(namespace)
        self.name = f"store:{'/'.join(self._namespace)}"
        self._words = LocalMemory(":memory:", embeddings="none")
        self._versions: set[tuple[str, datetime]] = set()
        self._reading = Lock()

    def search(
        self,
        query: str,
        k: int = 3,
        *,
        alpha: float | None = None,
        where: Mapping[str, str] | None = None,
    ) -> list[Found]:
        """Return the k best procedures by vectors and words, weighted as in a local memory."""
        weight = ALPHA if alpha is None else alpha
        check_search(k, weight)
        count, tags = max(k, CANDIDATES), checked_tags(where or {})
        near = self._nearest(clean(query), count, tags) if weight else None
        if near is None:
            near, weight = [], 0
        elif len(near) < k:
            # An approximate index over all namespaces may miss entries of a small one.
            tagged = (item for item in self if tags.items() <= item.tags.items())
            near = [*(Found(item, 0.0) for item in islice(tagged, k)), *near]
        words = self._best_words(query, count, tags) if weight < 1 else []
        procedures = {hit.procedure.id: hit.procedure for hit in (*near, *words)}
        scores = fused(
            {hit.procedure.id: hit.score for hit in near},
            {hit.procedure.id: hit.score for hit in words},
            weight,
        )
        return [Found(procedures[id_], score) for id_, score in scores[:k]]

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the given ids existed."""
        stored = self._stored(map(standard_id, ids))
        self._batch([PutOp(self._namespace, id_, None) for id_ in sorted(stored)])
        return len(stored)

    def is_empty(self) -> bool:
        """Return whether there are no procedures."""
        return not any(self)

    def __iter__(self) -> Iterator[Procedure]:
        """Iterate over all procedures in the store's order."""
        return filter(None, map(self._own, self._all_items()))

    def _write(
        self, procedures: Mapping[str, Procedure], stored: Mapping[str, Procedure]
    ) -> list[Failed]:
        del stored
        # Writers that lock rows in the same order cannot deadlock.
        values = [
            {
                "text": item.text(),
                **deepcopy(item.to_dict()),
                **{f"tag:{name}": value for name, value in item.tags.items()},
            }
            for _, item in sorted(procedures.items())
        ]
        puts = [PutOp(self._namespace, each["id"], each, index=["text"]) for each in values]
        refused = refusals(puts, self._batch, lambda: self._nearest("a procedure", 1, {}))
        return [Failed(put.key, str(why)) for put, why in refused]

    def _stored(self, ids: Iterable[str]) -> dict[str, Procedure]:
        possible = filter(is_uuid, dict.fromkeys(ids))
        items = self._batch([GetOp(self._namespace, id_) for id_ in possible])
        return {
            item.key: procedure
            for item in items
            if item and (procedure := stored_procedure(item.value))
        }

    def _own(self, item: Item) -> Procedure | None:
        """Return the procedure in an item, or None if the item belongs to a nested namespace."""
        return stored_procedure(item.value) if tuple(item.namespace) == self._namespace else None

    def _batch(self, operations: Sequence[Op]) -> list[Any]:
        with self._plain_failures():
            return self._store.batch(operations) if operations else []

    def _all_items(self) -> list[SearchItem]:
        """Return all items in one response, raising the limit until they all fit.

        Reading pages would require an offset, which makes each page as slow as all the pages before
        it. If the store's order has ties, two pages could also show one item twice and another not
        at all.
        """
        limit = _PAGE
        with self._plain_failures():
            while len(items := self._store.search(self._namespace, limit=limit)) == limit:
                limit *= 8
        return items

    def _nearest(self, query: str, count: int, tags: Mapping[str, str]) -> list[Found] | None:
        """Return the nearest procedures and their cosines, or None if there is no vector index."""
        limit = count
        # All stores compare top-level values alike, but not nested ones.
        wanted = {f"tag:{name}": value for name, value in tags.items()} or None
        while True:
            with self._plain_failures():
                try:
                    items = self._store.search(
                        self._namespace, query=query, filter=wanted, limit=limit
                    )
                except ValueError:  # some stores refuse such names in a filter
                    if not wanted:
                        raise
                    wanted = None
                    continue
            if items and all(item.score is None for item in items):
                return None
            hits = [
                # The vector of a text without known words is zero, so a database may return NaN.
                Found(procedure, score if math.isfinite(score) else 0.0)
                for item in items
                for score in [item.score or 0.0]
                if (procedure := self._own(item)) and tags.items() <= procedure.tags.items()
            ]
            if len(hits) >= count or len(items) < limit:
                return hits
            limit *= 4  # the others belong to namespaces below

    def _best_words(self, query: str, count: int, tags: Mapping[str, str]) -> list[Found]:
        """Return the procedures whose words match best.

        Others may have written to the store, so the words are indexed again if anything has
        changed.
        """
        with self._reading:
            items = self._all_items()
            versions = {(item.key, item.updated_at) for item in items}
            if versions != self._versions:
                self._words = LocalMemory(":memory:", embeddings="none")
                self._words.add(filter(None, map(self._own, items)))
                self._versions = versions
            return self._words.search(query, count, alpha=0, where=tags)

    @contextmanager
    def _plain_failures(self) -> Generator[None]:
        try:
            yield
        except StepcraftError:
            raise
        except Exception as error:
            kind = type(error).__name__
            reason = str(error).strip().partition("\n")[0][:200]
            is_old = kind in ("UndefinedTable", "UndefinedColumn")
            setup = "; call setup() of the store once" if is_old else ""
            raise MemoryFailure(
                f"the store failed at {self.name}: {kind}: {reason}{setup}"
            ) from error


def fused(
    near: Mapping[str, float], words: Mapping[str, float], weight: float
) -> list[tuple[str, float]]:
    """Return ids with scores that combine cosines and word scores, best first.

    An id that is not among the nearest is given the lowest of their cosines. Ties are broken by id,
    so that searches are reproducible.
    """
    floor = min(near.values(), default=0.0)
    scores = {
        id_: weight * near.get(id_, floor) + (1 - weight) * words.get(id_, 0.0)
        for id_ in {**near, **words}
    }
    return sorted(scores.items(), key=lambda item: (round(item[1], 6), item[0]), reverse=True)


def stored_procedure(value: Mapping[str, Any]) -> Procedure | None:
    """Return the procedure in a store item, or None if the item is not a procedure."""
    try:
        copies = {name: deepcopy(value[name]) for name in ("metadata", "tags") if name in value}
        return Procedure.of_kept({**value, **copies})  # InMemoryStore returns no copies
    except BadInput:
        return None


def checked_namespace(namespace: str) -> tuple[str, ...]:
    """Return the parts of a namespace, by default "procedures".

    Raises:
        BadInput: The namespace is invalid.
    """
    parts = tuple(filter(None, namespace.strip().strip("/").split("/"))) or (NAMESPACE,)
    if parts[0] == "langgraph" or any("." in part for part in parts):
        raise BadInput(
            f"store:{namespace} cannot be used: no part of a namespace may hold a dot, nor the "
            "first one be 'langgraph'"
        )
    return parts
