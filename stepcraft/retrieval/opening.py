"""Open memories and sources by name, each once for all runs in a process."""

import os
import re

from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langgraph.store.base import BaseStore

from stepcraft.access import fill_namespace
from stepcraft.concurrency import OncePerKey
from stepcraft.errors import MemoryFailure, SourceFailure
from stepcraft.memory.open import MEMORY_VARIABLE, open_memory
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.urls import fingerprint, scheme_of
from stepcraft.models.embeddings import default_embeddings
from stepcraft.secrets import masked_line
from stepcraft.sources import CorpusRetriever, open_source
from stepcraft.sources.corpus.files import roots_of
from stepcraft.sources.open import corpus_paths
from stepcraft.sources.shared.urls import is_shared

# Nothing is closed explicitly: an object is closed once later ones have displaced it and no run
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
    """Return the memory at a URL, waiting if another thread is opening it.

    A file that has changed is read again.

    Args:
        url: The URL, as for `open_memory`.
        embeddings: The embeddings, as for `open_memory`.
        store: The run's store, which a `store:` URL refers to.
        create: Whether to create a missing database.

    Raises:
        BadInput, MemoryFailure: As for `open_memory`.
    """
    where = _with_fields((url if url is not None else os.environ.get(MEMORY_VARIABLE, "")).strip())
    named = embeddings if embeddings is not None else default_embeddings()
    identity = named if isinstance(named, str) else id(named)
    key = (where, identity, id(store) if scheme_of(where) == "store" else 0, create)
    version = fingerprint(where)

    def opened() -> tuple[ProcedureMemory, object, object]:
        memory = open_memory(where, embeddings=embeddings, store=store, create=create)
        return memory, version, (embeddings, store)  # kept alive, as their ids are in the key

    return _MEMORIES.get(key, opened, lambda entry: entry[1] == version)[0]


def _with_fields(url: str) -> str:
    """Fill in fields such as {user} in the namespace or tenant of a URL."""
    if scheme_of(url).startswith("store"):
        scheme, _, rest = url.partition(":")
        return f"{scheme}:{'/'.join(fill_namespace(tuple(rest.split('/'))))}"
    if not (field := _TENANT.search(url)):
        return url
    [name] = fill_namespace((field[1],))
    start, stop = field.span(1)
    return f"{url[:start]}{name.ljust(4, '_')}{url[stop:]}"  # the minimum that Weaviate accepts


def opened_source(spec: str, *, age_s: float = 60) -> BaseRetriever:
    """Return the source for a spec, waiting if it is being opened.

    A corpus is opened again if its paths lead to other files or folders than before, for
    instance in another working directory. If changes cannot be read into an open corpus, for
    instance because its embedding model does not answer, it is searched as it is, with a note.

    Args:
        spec: The spec, as for `open_source`.
        age_s: The number of seconds after which a corpus checks its files again. Changes are added
            to its existing index, since reopening it would hold all vectors in memory twice.

    Raises:
        BadInput, MemoryFailure, SourceFailure: As for `open_source`.
    """
    where = _with_fields(spec) if is_shared(spec) else spec.strip()
    kind, _, rest = where.partition(":")
    if kind == "memory":
        return opened_memory(rest or None).as_retriever()
    roots = roots_of(corpus_paths(rest)[0]) if kind == "corpus" else {}

    def leads_there(kept: BaseRetriever) -> bool:
        return not isinstance(kept, CorpusRetriever) or kept.roots == roots

    source = _SOURCES.get(where, lambda: open_source(where), leads_there)
    if isinstance(source, CorpusRetriever):
        try:
            source.refresh(after_s=age_s)
        except (MemoryFailure, SourceFailure, OSError) as error:
            if not source.index.count():
                raise
            why = f"its changes cannot be read, so what was read before is searched: {error}"
            source.problems = {**source.problems, where: masked_line(why)}
    return source
