"""The protocol that every procedural memory keeps."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from stepcraft.errors import AddReport
from stepcraft.memory.procedure import Procedure

if TYPE_CHECKING:
    from stepcraft.memory.retriever import ProcedureRetriever

ALPHA = 0.4
"""The default weight of the vectors in a hybrid search: 1 only vectors (the AAG paper), 0 only words."""


@dataclass(frozen=True)
class Found:
    """A procedure and how well it fits the query (higher is better)."""

    procedure: Procedure
    score: float


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
