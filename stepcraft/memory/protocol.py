"""The protocol of procedural memories."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, runtime_checkable

from stepcraft.errors import AddReport, BadInput
from stepcraft.memory.history import revised
from stepcraft.memory.procedure import Found, Procedure
from stepcraft.secrets import excerpt

if TYPE_CHECKING:
    import numpy as np
    from langchain_core.retrievers import BaseRetriever
    from numpy.typing import NDArray

__all__ = [
    "ALPHA",
    "Found",
    "MadeWith",
    "ProcedureMemory",
    "VectorMemory",
    "WithVector",
    "by_short_id",
    "unknown_id",
]

ALPHA = 0.7
"""The weight of vectors in a hybrid search by default: 1 is vectors alone (the AAG paper), 0 is words alone.

Weaviate has its own, as it scales the scores otherwise. `benchmarks/retrieval_memory.py` compares weights; docs/memory.md
("Which search") has the figures.
"""


class ProcedureMemory(Protocol):
    """A collection of procedures that can be searched; the memory of AAG (§3.2).

    Graphs and the command line use a memory through these methods alone. All of them are thread-safe.
    """

    @property
    def name(self) -> str:
        """The name of the memory in messages and traces; it holds no secret."""
        ...

    @property
    def template(self) -> str:
        """How a procedure is written as one text, to be embedded and to be shown to a model."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether `add` and `delete` raise ReadOnlyMemory."""
        return False

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Add procedures. Adding one twice is adding it once; the same id with other content is an update.

        What an update replaces becomes a version of the procedure. Versions, votes and approvals that the memory has stay,
        and count as no difference where the added procedure does not have them (see `stepcraft.memory.history`).

        Args:
            procedures: the procedures.
            progress: called with the number of procedures processed so far.

        Raises:
            ReadOnlyMemory: the memory cannot be changed.
            MemoryFailure: it cannot be written. What was written stays, and adding again completes it; AddStopped
                holds the report so far.
        """
        ...

    def update(self, id: str, change: Callable[[Procedure], Procedure]) -> Procedure:  # noqa: A002 - the field is called id
        """Read a procedure, change it and write it; return it as it is now.

        What it was before becomes a version of it. No vote or version of another thread is lost. Whether that holds for
        other processes, too, is up to the memory: it does in a SQLite file and for `store+postgresql:`; elsewhere the last
        of two that write at the same moment wins. By default there is no such promise at all.

        Args:
            id: the id.
            change: makes the new procedure of the stored one, with the same id, as `dataclasses.replace` does. Others wait
                meanwhile, so it must be quick, and it must not use the memory.

        Raises:
            BadInput: there is no procedure with this id, or `change` gave it another one.
            ReadOnlyMemory, MemoryFailure: as `add`; nothing was changed.
        """
        kept = self.get(id)
        if kept is None:
            raise unknown_id(self, id)
        changed = revised(kept, change(kept))
        self.add([changed])
        return changed

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """Find the k procedures that fit a query best, best first.

        Args:
            query: the query.
            k: how many to find.
            alpha: the weight of vectors, from 0 (words alone) to 1 (vectors alone); None for the memory's default.

        Raises:
            BadInput: k is below 1, or alpha not between 0 and 1.
            MemoryFailure: the memory cannot be read.
        """
        ...

    async def asearch(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """As `search`, without blocking the event loop; in a thread by default."""
        return await asyncio.to_thread(self.search, query, k, alpha=alpha)

    def get(self, id: str) -> Procedure | None:  # noqa: A002 - the field is called id
        """Return the procedure with this id, or None."""
        ...

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the ids existed."""
        ...

    def count(self) -> int:
        """Return the number of procedures."""
        ...

    def is_empty(self) -> bool:
        """Whether there is no procedure; cheaper than `count` where counting reads every procedure."""
        return self.count() == 0

    def __iter__(self) -> Iterator[Procedure]: ...

    def close(self) -> None:
        """Close files and connections."""
        ...

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def as_retriever(self, k: int = 3, *, alpha: float | None = None) -> "BaseRetriever":
        """Return this memory as a LangChain retriever, whose searches show as retriever runs in a trace."""
        from stepcraft.memory.retriever import ProcedureRetriever  # noqa: PLC0415 - loads langchain-core

        return ProcedureRetriever(memory=self, k=k, alpha=alpha)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def unknown_id(memory: ProcedureMemory, id: str) -> BadInput:  # noqa: A002 - the field is called id
    """The error for an id that no procedure of a memory has."""
    return BadInput(
        f"no procedure has the id {excerpt(id)} in {memory.name}; take one that a search of it shows"
    )


def by_short_id(memory: ProcedureMemory, beginning: str) -> Procedure:
    """Return the procedure with this id, or the only one whose id begins like this.

    Raises:
        BadInput: there is none, or more than one.
    """
    wanted = beginning.strip().lower()
    if exact := memory.get(wanted):
        return exact
    fitting = [procedure for procedure in memory if wanted and procedure.id.startswith(wanted)]
    if len(fitting) != 1:
        problem = "no procedure has" if not fitting else f"{len(fitting)} procedures have"
        raise BadInput(
            f"{problem} an id that starts with {excerpt(beginning)} in {memory.name}; a search of it shows the ids"
        )
    return fitting[0]


WithVector: TypeAlias = "tuple[Procedure, NDArray[np.float32] | None]"
"""A procedure and its unit vector: of length 0 where it has none, None where the vector is still to be made."""


@dataclass(frozen=True)
class MadeWith:
    """The embedding model and template behind the vectors of a memory."""

    embeddings: str
    """The name of the model; "none" for a memory without vectors."""
    dimensions: int
    """The length of the vectors; 0 without embeddings, or before the first vector."""
    template: str

    def fits(self, other: "MadeWith") -> bool:
        """Whether vectors can be copied between two memories."""
        return (
            self.embeddings == other.embeddings != "none"
            and self.template == other.template
            and (self.dimensions == other.dimensions or not self.dimensions or not other.dimensions)
        )


@runtime_checkable
class VectorMemory(ProcedureMemory, Protocol):
    """A memory that stores vectors with its procedures and can export and import them."""

    @property
    def made_with(self) -> MadeWith:
        """What the vectors were made with."""
        ...

    def with_vectors(self) -> Iterator[WithVector]:
        """Iterate over all procedures with their vectors."""
        ...

    def add_with_vectors(
        self, items: Iterable[WithVector], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """As `add`; only vectors that are None are made."""
        ...
