"""Memories and sources by name, each opened once for all runs of a process."""

import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langgraph.store.base import BaseStore

from stepcraft.access import fill_namespace
from stepcraft.concurrency import OncePerKey
from stepcraft.memory.open import MEMORY_VARIABLE, open_memory
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.urls import fingerprint, scheme_of
from stepcraft.sources import CorpusRetriever, open_source

T = TypeVar("T")


@dataclass(frozen=True)
class Opening(Generic[T]):
    """How a memory or source is opened.

    All runs of the process share what is opened under the same key.

    Nobody closes it: it is closed when it has been displaced by later ones and no run uses it any
    more.
    """

    key: tuple[Hashable, ...]
    make: Callable[[], T]
    version: Callable[[], object] = lambda: None
    """Reads from the file system what differs once the opened value is out of date."""
    renew: Callable[[T], None] = lambda _: None
    """Brings the opened value up to date in place, as when a run begins; it may block."""

    def open(self, *, refresh: bool) -> T:
        """Return the opened value, waiting for whoever is opening it.

        Args:
            refresh: Whether a value that is out of date is opened again or renewed, as when a run
                begins.

        Raises:
            BadInput, MemoryFailure, SourceFailure: As `open_memory` and `open_source`.
        """
        opened = None if refresh else _OPENED.peek(self.key)
        if opened is None:
            version = self.version()

            def is_current(opened: _Opened) -> bool:
                return not refresh or opened.version == version

            opened = _OPENED.get(self.key, lambda: _Opened(self.make(), version, self), is_current)
        value: T = opened.value
        if refresh:
            self.renew(value)
        return value


@dataclass(frozen=True)
class _Opened:
    value: Any
    version: object
    opening: Opening[Any]
    """Keeps the objects alive whose identity is part of the key."""


_OPENED: OncePerKey[tuple[Hashable, ...], _Opened] = OncePerKey(32)


def memory_opening(
    url: str | None,
    *,
    embeddings: str | Embeddings | None = None,
    store: BaseStore | None = None,
    create: bool = False,
) -> Opening[ProcedureMemory]:
    """How the memory of a URL is opened. A file that changed is read again.

    Args:
        url: as `open_memory` takes it.
        embeddings: as `open_memory` takes them.
        store: the run's store, in which `store:` is kept.
        create: whether a missing database is made.
    """
    where = _with_fields((url if url is not None else os.environ.get(MEMORY_VARIABLE, "")).strip())
    named = embeddings if embeddings is not None else os.environ.get("STEPCRAFT_EMBEDDINGS", "")
    identity = named if isinstance(named, str) else id(named)
    key = ("memory", where, identity, id(store) if scheme_of(where) == "store" else 0, create)
    make = partial(open_memory, where, embeddings=embeddings, store=store, create=create)
    return Opening(key, make, partial(fingerprint, where))


def _with_fields(url: str) -> str:
    """Return a store's URL with the fields of its namespace, such as {user}, filled for the run."""
    if not scheme_of(url).startswith("store") or "{" not in url:
        return url
    scheme, _, rest = url.partition(":")
    return f"{scheme}:{'/'.join(fill_namespace(tuple(rest.split('/'))))}"


def source_opening(spec: str, *, age_s: float = 60) -> Opening[BaseRetriever]:
    """How the source of a spec is opened.

    Args:
        spec: As `open_source` takes it.
        age_s: Seconds after which the files of a corpus are looked at again. Its index takes in
            what changed: opened anew, it would hold all vectors a second time.
    """

    def refresh(source: BaseRetriever) -> None:
        if isinstance(source, CorpusRetriever):
            source.refresh(after_s=age_s)

    return Opening(("source", spec), partial(open_source, spec), renew=refresh)
