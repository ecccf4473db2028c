"""A memory in a LangGraph store (`BaseStore`), such as the one that a server gives to its graphs."""

import asyncio
import itertools
import math
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchItem

from stepcraft.concurrency import in_thread, shared_lock
from stepcraft.errors import AddReport, BadInput, MemoryFailure, StepcraftError
from stepcraft.index import Entry, LocalIndex
from stepcraft.memory.history import changes, latest, revised
from stepcraft.memory.procedure import TEMPLATE, Found, Procedure, checked_template
from stepcraft.memory.protocol import ProcedureMemory, unknown_id
from stepcraft.memory.transfer import add_in_batches
from stepcraft.secrets import without_secrets
from stepcraft.text.clean import clean

NAMESPACE = "procedures"
"""The namespace that is used when none is named."""

_BATCH = 100
_PAGE = 1000
_DIMENSIONS = re.compile(
    r"expected (\d+) dimensions, not (\d+)|different \w+ dimensions (\d+) and (\d+)"
)
"""What pgvector says of a vector that does not fit its index."""


class StoreMemory(ProcedureMemory):
    """Procedures in a namespace of a LangGraph store; items that are no procedures are ignored.

    A store with a vector index ranks by meaning. In a store without one, all items are ranked by words. Namespaces below
    this one are memories of their own.

    Args:
        store: the store.
        namespace: its parts joined by "/", such as "team/recipes"; "procedures" if empty.
        template: how a procedure is written as one text, which the store embeds; TEMPLATE if None.

    Raises:
        BadInput: a store refuses such a namespace, or the template cannot be filled in.
    """

    def __init__(
        self, store: BaseStore, namespace: str = "", *, template: str | None = None
    ) -> None:
        self._store = store
        self._namespace = checked_namespace(namespace)
        self._template = checked_template(template or TEMPLATE)
        self._words = LocalIndex(":memory:")
        self._updating = threading.Lock()
        self._changing = shared_lock(("changing", self.name))

    @property
    def name(self) -> str:
        """The URL that opens it."""
        return f"store:{'/'.join(self._namespace)}"

    @property
    def template(self) -> str:
        """How a procedure is written as one text."""
        return self._template

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Add procedures, a hundred at a time."""
        return add_in_batches(procedures, _BATCH, self._put, progress)

    def update(self, id: str, change: Callable[[Procedure], Procedure]) -> Procedure:  # noqa: A002 - the field is called id
        """Read a procedure, change it and write it; of two processes that do so at the same moment, the last one wins."""
        with self._exclusively():
            kept = self.get(id)
            if kept is None:
                raise unknown_id(self, id)
            changed = revised(kept, change(kept))
            if changed != kept:
                self._write([changed])
        return changed

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """Find the k procedures that fit best: by the store's vector index if it has one and alpha is not 0, else by words."""
        if k < 1 or not 0 <= (alpha or 0) <= 1:
            raise BadInput(f"k must be at least 1 and alpha between 0 and 1, not {k} and {alpha}")
        nearest = None if alpha == 0 else self._search_vectors(clean(query), k)
        if nearest is None:
            return self._search_words(query, k)
        return nearest if len(nearest) == k else self._with_words(nearest, query, k)

    async def asearch(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """As `search`, in a thread of its own.

        The threads of the event loop stay free: an async store embeds the query in one of them, and would wait for ever
        if they all waited for it.
        """
        return await asyncio.wrap_future(in_thread(partial(self.search, query, k, alpha=alpha)))

    def get(self, id: str) -> Procedure | None:  # noqa: A002 - the field is called id
        """Return the procedure with this id, or None."""
        return self._kept([id]).get(id)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the ids existed."""
        kept = self._kept(list(ids))
        self._batch([PutOp(self._namespace, name, None) for name in sorted(kept)])
        return len(kept)

    def count(self) -> int:
        """Return the number of procedures; a store cannot count, so all of them are read, a page at a time."""
        return sum(1 for _ in self)

    def is_empty(self) -> bool:
        """Whether there is no procedure; reads one item, and more only where the first ones are no procedures."""
        first = self._page(0, 1)
        return not first or (self._own(first[0]) is None and next(iter(self), None) is None)

    def __iter__(self) -> Iterator[Procedure]:
        """All procedures, in the store's order."""
        return (procedure for item in self._items() if (procedure := self._own(item)))

    def close(self) -> None:
        """Close the index for searches by words; the store stays open."""
        self._words.close()

    def _put(self, procedures: list[Procedure]) -> AddReport:
        unique = latest(procedures)
        kept = self._kept(list(unique))
        changed = changes(kept, unique.values())
        replaced = [name for name in changed if name in kept]
        if replaced:
            with self._exclusively():
                current = self._kept(replaced)
                moved = [name for name in replaced if current.get(name) != kept[name]]
                for name in moved:  # another writer was there since they were read
                    del changed[name]
                changed |= changes(current, [unique[name] for name in moved])
                self._write(changed.values())
        else:
            self._write(changed.values())
        updated = sum(name in kept for name in changed)
        return AddReport(len(changed) - updated, len(procedures) - len(changed), updated)

    @contextmanager
    def _exclusively(self) -> Generator[None]:
        """Keep others from changing what is stored. New procedures are added without it."""
        with self._changing:
            yield

    def _write(self, procedures: Iterable[Procedure]) -> None:
        # Writers that lock rows in one order do not wait for each other in a circle.
        ordered = sorted(procedures, key=lambda procedure: procedure.id)
        self._batch(
            [PutOp(self._namespace, item.id, self._value(item), index=["text"]) for item in ordered]
        )

    def _kept(self, ids: list[str]) -> dict[str, Procedure]:
        """The procedures with these ids. What no procedure can have as an id, a database may refuse to look for."""
        possible = [name for name in dict.fromkeys(ids) if name and clean(name).strip() == name]
        items = self._batch([GetOp(self._namespace, name) for name in possible])
        return {
            item.key: procedure
            for item in items
            if isinstance(item, Item) and (procedure := _procedure(item))
        }

    def _own(self, item: Item) -> Procedure | None:
        """The procedure of an item that a search of the store found; None if it belongs to another namespace.

        A store also finds what is below a namespace, and that of langgraph-checkpoint-postgres before 3.1.1 what begins alike.
        """
        return _procedure(item) if tuple(item.namespace) == self._namespace else None

    def _value(self, procedure: Procedure) -> dict[str, Any]:
        return {"text": procedure.text(self._template), **procedure.to_dict()}

    def _batch(self, operations: list[Op]) -> list[Any]:
        with self._plain_failures():
            return self._store.batch(operations) if operations else []

    def _items(self) -> Iterator[SearchItem]:
        """All items that a search of the store finds, each once.

        Where the store's order has ties, pages may show one item twice and another not at all; then everything is read
        again in larger pages.
        """
        given: set[tuple[tuple[str, ...], str]] = set()
        size = _PAGE
        while True:
            found: set[tuple[tuple[str, ...], str]] = set()
            read = 0
            for start in itertools.count(step=size):
                page = self._page(start, size)
                read += len(page)
                for item in page:
                    name = (tuple(item.namespace), item.key)
                    found.add(name)
                    if name not in given:
                        given.add(name)
                        yield item
                if len(page) < size:
                    break
            if read == len(found):
                return
            size *= 4

    def _page(self, start: int, limit: int) -> list[SearchItem]:
        with self._plain_failures():
            return self._store.search(self._namespace, limit=limit, offset=start)

    def _search_vectors(self, query: str, k: int) -> list[Found] | None:
        """The k procedures nearest to a query; None if the store has no vector index."""
        limit = k
        while True:
            with self._plain_failures():
                items = self._store.search(self._namespace, query=query, limit=limit)
            if any(item.score is None for item in items):
                return None
            found = [
                Found(procedure, _finite(item.score))
                for item in items
                if (procedure := self._own(item))
            ]
            if len(found) >= k or len(items) < limit:
                return found[:k]
            limit *= 4

    def _with_words(self, nearest: list[Found], query: str, k: int) -> list[Found]:
        """As many as there are of k procedures: an approximate index may miss those of a small namespace.

        pgvector's HNSW picks from the nearest of all namespaces those of this one. What it misses is ranked by words.
        """
        ids, last = (
            {hit.procedure.id for hit in nearest},
            nearest[-1].score if nearest else math.inf,
        )
        missed = [hit for hit in self._search_words(query, k) if hit.procedure.id not in ids]
        return [*nearest, *(Found(hit.procedure, min(hit.score, last)) for hit in missed)][:k]

    def _search_words(self, query: str, k: int) -> list[Found]:
        """Rank all items by words, in an index that is updated first, because others may have written to the store."""
        entries = [Entry(item.id, item.text(self._template), item.to_dict()) for item in self]
        with self._updating:
            now = {entry.id for entry in entries}
            self._words.delete([entry.id for entry in self._words if entry.id not in now])
            self._words.put(entries)
            hits = self._words.search(query, k, alpha=0)
        return [Found(Procedure.from_dict(hit.entry.payload), hit.score) for hit in hits]

    @contextmanager
    def _plain_failures(self) -> Generator[None]:
        try:
            yield
        except StepcraftError:
            raise
        except Exception as error:
            raise MemoryFailure(f"the store failed at {self.name}: {_reason(error)}") from error


def _procedure(item: Item | None) -> Procedure | None:
    try:
        return Procedure.from_dict(item.value) if item else None
    except BadInput:
        return None


def _finite(score: float | None) -> float:
    """A text without known words has no direction, so a database may give no number."""
    return score if score and math.isfinite(score) else 0.0


def _reason(error: Exception) -> str:
    told = without_secrets(str(error)).strip().partition("\n")[0][:200]
    if unlike := _DIMENSIONS.search(told):
        made, given = (number for number in unlike.groups() if number)
        return (
            f"its vector index has {made} dimensions and its embeddings give {given}; "
            "give it the embeddings that the index was made with, or use another database"
        )
    reason = f"{type(error).__name__}: {told}"
    return (
        f"{reason}; call setup() of the store once"
        if type(error).__name__ == "UndefinedTable"
        else reason
    )


def checked_namespace(named: str) -> tuple[str, ...]:
    """The parts of a namespace: "procedures" if none is named.

    Raises:
        BadInput: a store refuses such a namespace.
    """
    parts = tuple(part for part in named.strip().strip("/").split("/") if part) or (NAMESPACE,)
    if parts[0] == "langgraph" or any("." in part for part in parts):
        raise BadInput(
            f"store:{named} cannot be used: no part of a namespace may hold a dot, nor the first one be 'langgraph'"
        )
    return parts
