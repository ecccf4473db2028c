"""The protocol that every procedural memory keeps, and `open_memory`, which finds one by its URL."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from stepcraft.errors import BadInput
from stepcraft.memory._urls import fingerprint, is_text, path_of, scheme_of
from stepcraft.memory.procedure import Procedure

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langgraph.store.base import BaseStore

    from stepcraft.memory.retriever import ProcedureRetriever

ALPHA = 0.4
"""The default weight of the vectors in a hybrid search: 1 only vectors (the AAG paper), 0 only words."""

BUNDLED = "the bundled procedures"
"""The name of the memory that ships with the package."""

VARIABLE = "STEPCRAFT_MEMORY"
"""The environment variable that is read where no memory is named."""


@dataclass(frozen=True)
class Found:
    """A procedure and how well it fits the query (higher is better)."""

    procedure: Procedure
    score: float


@dataclass(frozen=True)
class Failed:
    """A record that did not go in: where it stood (a line of a file, or the id of the procedure) and why."""

    where: str
    reason: str


@dataclass
class AddReport:
    """What became of the procedures that were to be added."""

    added: int = 0
    present: int = 0
    """Were there already, unchanged."""
    updated: int = 0
    """Had the same id and other content, source or metadata: replaced."""
    failed: list[Failed] = field(default_factory=list[Failed])

    def include(self, other: "AddReport") -> None:
        """Count in what another report says."""
        self.added += other.added
        self.present += other.present
        self.updated += other.updated
        self.failed += other.failed


class ProcedureMemory(Protocol):
    """What the graphs and the command line ask of a memory. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """What the memory is called in messages and traces; never holds a secret."""
        ...

    @property
    def template(self) -> str:
        """How a procedure reads as one text, where it is embedded and where a model sees it."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether `add` and `delete` raise ReadOnlyMemory; no, unless a memory says otherwise."""
        return False

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Keep procedures. Adding twice is adding once; the same id with other content is an update.

        `progress` is called with the number of procedures done so far.

        Raises:
            ReadOnlyMemory: the memory cannot be changed.
            MemoryFailure: it cannot be written; what was done so far is kept, and adding again does the rest
                (AddStopped tells what was done).
        """
        ...

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """The k procedures that fit best, best first. `alpha` None means the memory's own weight.

        Raises:
            BadInput: k is below 1, or alpha not between 0 and 1.
            MemoryFailure: the memory cannot be read.
        """
        ...

    async def asearch(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """As `search`, without blocking the event loop: in a thread, unless a memory knows better."""
        return await asyncio.to_thread(self.search, query, k, alpha=alpha)

    def get(self, id: str) -> Procedure | None:  # noqa: A002 - the field is called id
        """The procedure with this id, or None."""
        ...

    def delete(self, ids: Iterable[str]) -> int:
        """Forget procedures; how many of them there were."""
        ...

    def count(self) -> int:
        """How many procedures there are."""
        ...

    def __iter__(self) -> Iterator[Procedure]: ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def as_retriever(self, k: int = 3, *, alpha: float | None = None) -> "ProcedureRetriever":
        """This memory as a LangChain retriever, so that a search shows as a retriever run in a trace."""
        from stepcraft.memory.retriever import ProcedureRetriever  # noqa: PLC0415 - loads langchain-core

        return ProcedureRetriever(memory=self, k=k, alpha=alpha)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_memory(
    url: str | os.PathLike[str] | None = None,
    *,
    embeddings: "str | Embeddings | None" = None,
    template: str | None = None,
    store: "BaseStore | None" = None,
    create: bool = True,
) -> ProcedureMemory:
    """A memory by its URL.

    Args:
        url: `procedures.db` (a SQLite file), `procedures.jsonl`, `.json` or `.csv` (read into memory,
            read-only), `store:` or `store:name/space` (LangGraph's store, given as `store`),
            `weaviate://host:8080/Collection`, `weaviate+embedded:///folder/Collection` or
            `weaviate+cloud://cluster/Collection` (see WeaviateMemory). None means the URL in
            STEPCRAFT_MEMORY, else the procedures that ship with the package (read-only).
        embeddings: "wordllama", "none", an `init_embeddings` string or an Embeddings object; None means what
            an existing database was made with, else STEPCRAFT_EMBEDDINGS, else the best that needs no key.
        template: how a procedure reads as one text; None means what a database was made with, else TEMPLATE.
        store: the store that `store:` speaks of.
        create: whether a missing database or collection is made.

    Raises:
        BadInput: the URL is not understood, or the file that it names cannot be read as procedures.
        MemoryFailure: the database cannot be opened, or was made with other embeddings or another template.
    """
    where = os.fspath(url if url is not None else os.environ.get(VARIABLE, "")).strip()
    scheme = scheme_of(where)
    if scheme == "store":
        from stepcraft.memory.base_store import StoreMemory  # noqa: PLC0415 - loads langgraph

        if store is None:
            raise BadInput(
                f"{where} is LangGraph's store: it is there in a graph that was given one, or pass store="
            )
        return StoreMemory(store, where.removeprefix("store:"), template=template)
    if scheme.startswith("weaviate"):
        from stepcraft.memory.weaviate import WeaviateMemory  # noqa: PLC0415 - loads the client

        return WeaviateMemory(where, embeddings=embeddings, template=template, create=create)
    from stepcraft.memory.local import LocalMemory  # noqa: PLC0415 - loads numpy

    if not where:
        bundled = Path(str(files("stepcraft.memory") / "lgstep.jsonl"))
        return LocalMemory.of_file(bundled, name=BUNDLED, embeddings=embeddings, template=template)
    path = path_of(where)
    if is_text(path):
        return LocalMemory.of_file(path, embeddings=embeddings, template=template)
    return LocalMemory(path, embeddings=embeddings, template=template, create=create)


def shared_memory(
    url: str | None = None, *, embeddings: "str | Embeddings | None" = None, store: "BaseStore | None" = None
) -> ProcedureMemory:
    """The memory of a URL as `open_memory` gives it, opened once for all runs of this process.

    A file that was changed or replaced since is opened anew. A missing database is not made. Nobody closes
    what this returns: it goes when nothing uses it any more.
    """
    where = (url if url is not None else os.environ.get(VARIABLE, "")).strip()
    named = embeddings if embeddings is not None else os.environ.get("STEPCRAFT_EMBEDDINGS", "")
    key = (
        where,
        named if isinstance(named, str) else id(named),
        id(store) if scheme_of(where) == "store" else 0,
    )
    with _sharing:
        state = fingerprint(where)
        held = _shared.pop(key, None)
        if held is None or held.state != state:
            memory = open_memory(where, embeddings=embeddings, store=store, create=False)
            held = _Shared(memory, state, (embeddings, store))
        _shared[key] = held
        while len(_shared) > _SHARED_MEMORIES:
            _shared.pop(next(iter(_shared)))
        return held.memory


@dataclass(frozen=True)
class _Shared:
    memory: ProcedureMemory
    state: object
    keeps_alive: object
    """The objects whose identity is part of the key."""


_SHARED_MEMORIES = 32
_shared: dict[tuple[str, str | int, int], _Shared] = {}
_sharing = threading.Lock()
