"""A memory in a LangGraph store (`BaseStore`), such as the one that a server gives to its graphs."""

import itertools
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchItem

from stepcraft.errors import AddReport, AddStopped, BadInput, MemoryFailure, StepcraftError
from stepcraft.index import Entry, LocalIndex
from stepcraft.memory.procedure import TEMPLATE, Found, Procedure, checked_template
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.secrets import without_secrets
from stepcraft.text.clean import clean

NAMESPACE = "procedures"
"""The namespace that is used when none is named."""

_BATCH = 100
_PAGE = 1000


class StoreMemory(ProcedureMemory):
    """Procedures in a namespace of a LangGraph store; items that are no procedures are ignored.

    A store with a vector index ranks by meaning. In a store without one, all items are ranked by words.

    Args:
        store: the store.
        namespace: its parts joined by "/", such as "team/recipes"; "procedures" if empty.
        template: how a procedure is written as one text, which the store embeds; TEMPLATE if None.

    Raises:
        BadInput: a store refuses such a namespace, or the template cannot be filled in.
    """

    def __init__(self, store: BaseStore, namespace: str = "", *, template: str | None = None) -> None:
        self._store = store
        self._namespace = _namespace(namespace)
        self._template = checked_template(template or TEMPLATE)
        self._words = LocalIndex(":memory:")
        self._updating = threading.Lock()

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
        report, done, left = AddReport(), 0, iter(procedures)
        try:
            while batch := list(itertools.islice(left, _BATCH)):
                report.include(self._put(batch))
                done += len(batch)
                if progress:
                    progress(done)
        except MemoryFailure as error:
            if not done:
                raise
            raise AddStopped(str(error), report, done) from error
        return report

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """Find the k procedures that fit best: by the store's vector index if it has one and alpha is not 0, else by words."""
        if k < 1 or not 0 <= (alpha or 0) <= 1:
            raise BadInput(f"k must be at least 1 and alpha between 0 and 1, not {k} and {alpha}")
        if alpha != 0:
            with self._plain_failures():
                items = self._store.search(self._namespace, query=clean(query), limit=k)
            if all(item.score is not None for item in items):
                return [
                    Found(procedure, item.score or 0.0) for item in items if (procedure := _procedure(item))
                ]
        return self._search_words(query, k)

    def get(self, id: str) -> Procedure | None:  # noqa: A002 - the field is called id
        """Return the procedure with this id, or None."""
        with self._plain_failures():
            return _procedure(self._store.get(self._namespace, id))

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the ids existed."""
        kept = self._kept(list(ids))
        self._batch([PutOp(self._namespace, name, None) for name in kept])
        return len(kept)

    def count(self) -> int:
        """Return the number of procedures; a store cannot count, so all of them are read, a page at a time."""
        return sum(1 for _ in self)

    def is_empty(self) -> bool:
        """Whether there is no procedure; reads one item, and more only where the first ones are no procedures."""
        first = self._page(0, 1)
        return not first or (_procedure(first[0]) is None and next(iter(self), None) is None)

    def __iter__(self) -> Iterator[Procedure]:
        """All procedures, in the store's order."""
        return (procedure for item in self._items() if (procedure := _procedure(item)))

    def close(self) -> None:
        """Close the index for searches by words; the store stays open."""
        self._words.close()

    def _put(self, procedures: list[Procedure]) -> AddReport:
        report = AddReport()
        unique: dict[str, Procedure] = {procedure.id: procedure for procedure in procedures}
        report.present = len(procedures) - len(unique)
        kept = self._kept(list(unique))
        changed = [procedure for procedure in unique.values() if kept.get(procedure.id) != procedure]
        report.present += len(unique) - len(changed)
        report.updated = sum(procedure.id in kept for procedure in changed)
        report.added = len(changed) - report.updated
        self._batch([PutOp(self._namespace, item.id, self._value(item), index=["text"]) for item in changed])
        return report

    def _kept(self, ids: list[str]) -> dict[str, Procedure]:
        items = self._batch([GetOp(self._namespace, name) for name in dict.fromkeys(ids)])
        return {
            item.key: procedure
            for item in items
            if isinstance(item, Item) and (procedure := _procedure(item))
        }

    def _value(self, procedure: Procedure) -> dict[str, Any]:
        return {"text": procedure.text(self._template), **procedure.to_dict()}

    def _batch(self, operations: list[Op]) -> list[Any]:
        with self._plain_failures():
            return self._store.batch(operations) if operations else []

    def _items(self) -> Iterator[SearchItem]:
        for start in itertools.count(step=_PAGE):
            page = self._page(start, _PAGE)
            yield from page
            if len(page) < _PAGE:
                return

    def _page(self, start: int, limit: int) -> list[SearchItem]:
        with self._plain_failures():
            return self._store.search(self._namespace, limit=limit, offset=start)

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
            raise MemoryFailure(
                f"the store failed at {self.name}: {type(error).__name__}: {without_secrets(str(error))[:200]}"
            ) from error


def _procedure(item: Item | None) -> Procedure | None:
    try:
        return Procedure.from_dict(item.value) if item else None
    except BadInput:
        return None


def _namespace(named: str) -> tuple[str, ...]:
    parts = tuple(part for part in named.strip().strip("/").split("/") if part) or (NAMESPACE,)
    if parts[0] == "langgraph" or any("." in part for part in parts):
        raise BadInput(
            f"store:{named} cannot be used: no part of a namespace may hold a dot, nor the first one be 'langgraph'"
        )
    return parts
