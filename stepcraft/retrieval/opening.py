"""Memories and sources by name, each opened once for all runs of a process."""

import os
import re

from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langgraph.store.base import BaseStore

from stepcraft.access import fill_namespace
from stepcraft.concurrency import OncePerKey
from stepcraft.memory.open import MEMORY_VARIABLE, open_memory
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.urls import fingerprint, scheme_of
from stepcraft.models.embeddings import default_embeddings
from stepcraft.sources import CorpusRetriever, open_source
from stepcraft.sources.shared.urls import is_shared

# Nobody closes what is opened: it is closed when it has been displaced by later ones and no run
# uses it any more.
_MEMORIES: OncePerKey[object, tuple[ProcedureMemory, object, object]] = OncePerKey()
_TENANT = re.compile(r"[?&]tenant=(\{\w+\})")
_SOURCES: OncePerKey[str, BaseRetriever] = OncePerKey()


def opened_memory(
    url: str | None,
    *,
    embeddings: str | Embeddings | None = None,
    store: BaseStore | None = None,
    create: bool = False,
) -> ProcedureMemory:
    """Return the memory of a URL, waiting for whoever is opening it; a changed file is read again.

    Args:
        url: As `open_memory` takes it.
        embeddings: As `open_memory` takes them.
        store: The run's store, in which `store:` is kept.
        create: Whether a missing database is made.

    Raises:
        BadInput, MemoryFailure: As `open_memory`.
    """
    where = _with_fields((url if url is not None else os.environ.get(MEMORY_VARIABLE, "")).strip())
    named = embeddings if embeddings is not None else default_embeddings()
    identity = named if isinstance(named, str) else id(named)
    key = (where, identity, id(store) if scheme_of(where) == "store" else 0, create)
    version = fingerprint(where)

    def opened() -> tuple[ProcedureMemory, object, object]:
        memory = open_memory(where, embeddings=embeddings, store=store, create=create)
        return memory, version, (embeddings, store)  # whose ids are in the key

    return _MEMORIES.get(key, opened, lambda entry: entry[1] == version)[0]


def _with_fields(url: str) -> str:
    """Return a URL with the fields of its namespace or tenant, such as {user}, filled in."""
    if scheme_of(url).startswith("store"):
        scheme, _, rest = url.partition(":")
        return f"{scheme}:{'/'.join(fill_namespace(tuple(rest.split('/'))))}"
    if not (field := _TENANT.search(url)):
        return url
    [name] = fill_namespace((field[1],))
    return url.replace(field[1], name.ljust(4, "_"))  # the least that Weaviate takes


def opened_source(spec: str, *, age_s: float = 60) -> BaseRetriever:
    """Return the source of a spec, waiting for whoever is opening it.

    Args:
        spec: As `open_source` takes it.
        age_s: Seconds after which the files of a corpus are looked at again. Its index takes in
            what changed: opened anew, it would hold all vectors a second time.

    Raises:
        BadInput, MemoryFailure, SourceFailure: As `open_source`.
    """
    where = _with_fields(spec) if is_shared(spec) else spec
    source = _SOURCES.get(where, lambda: open_source(where))
    if isinstance(source, CorpusRetriever):
        source.refresh(after_s=age_s)
    return source
