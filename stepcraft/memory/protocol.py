"""The base class of procedural memories."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from stepcraft.concurrency import to_thread
from stepcraft.errors import AddReport, BadInput, Conflict, MemoryFailure
from stepcraft.memory.history import same_text, with_versions
from stepcraft.memory.procedure import Found, Procedure, id_of_key
from stepcraft.secrets import excerpt

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever

ALPHA = 0.7
"""The default weight of vectors in a hybrid search: 1 uses only vectors (as in the AAG paper), 0
only words.

Weaviate has its own default, as it scales scores differently. `benchmarks/retrieval_memory.py`
compares weights; docs/memory.md ("How search works") has the figures.
"""


class ProcedureMemory(ABC):
    """A searchable collection of procedures; the memory of AAG (§3.2).

    To write a memory of your own, derive from this class and implement `search`, `add` and `get`,
    which is all that graphs need. Commands that count, list, export or delete also need `count`,
    `__iter__` and `delete`. All methods may be called from several threads.
    """

    read_only: bool = False
    """Whether `add` and `delete` raise ReadOnlyMemory."""

    @cached_property
    def name(self) -> str:
        """The name of the memory in messages and traces; it contains no secrets."""
        return type(self).__name__

    @abstractmethod
    def search(
        self,
        query: str,
        k: int = 3,
        *,
        alpha: float | None = None,
        where: Mapping[str, str] | None = None,
    ) -> list[Found]:
        """Return the k procedures that best fit a query, best first.

        Args:
            query: The query.
            k: The maximum number of results.
            alpha: The weight of vectors, from 0 (words only) to 1 (vectors only); None for the
                memory's default.
            where: Tags that a procedure must have, with their values. A memory of your own needs
                this parameter only if it is searched by tags.

        Raises:
            BadInput: k is below 1, alpha is not between 0 and 1, or `where` is not a mapping of
                strings.
            MemoryFailure: The memory cannot be read.
        """

    @abstractmethod
    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Add procedures. Adding one twice has the same effect as adding it once.

        Adding different content under an existing id is an update, which keeps the outcomes (see
        `stepcraft.memory.batches.replacement`).

        Args:
            procedures: The procedures.
            progress: Called with the number of procedures processed so far.

        Raises:
            ReadOnlyMemory: The memory cannot be changed.
            MemoryFailure: The memory cannot be written. Anything already written is kept, and
                adding the procedures again stores the rest; AddStopped contains the report so far.
        """

    @abstractmethod
    def get(self, id: str) -> Procedure | None:
        """Return the procedure with this id, or None."""

    def get_many(self, ids: Iterable[str]) -> dict[str, Procedure]:
        """Return the procedures with these ids, by id; ids that do not exist are left out."""
        return {procedure.id: procedure for procedure in map(self.get, ids) if procedure}

    def update(
        self,
        id: str,
        change: Callable[[Procedure], Procedure],
        *,
        made_from: Procedure | None = None,
    ) -> Procedure:
        """Read, change and write a procedure, and return the new version.

        Its earlier versions are kept with it (see `stepcraft.memory.history`).

        The memories in this package never lose a concurrent change from another thread, and those
        in a SQLite file or in Postgres never lose one from another process. Elsewhere the last
        writer wins.

        Args:
            id: The id of the procedure.
            change: Takes the stored procedure and returns the new one, with the same id and key,
                for example by using `dataclasses.replace`. It must be quick, and must not use the
                memory.
            made_from: The version that the change is based on, for example one that a person has
                spent some time editing.

        Raises:
            BadInput: There is no procedure with this id, or `change` returned one with another id
                or key.
            Conflict: The stored text no longer matches that of `made_from`; nothing was changed.
            ReadOnlyMemory, MemoryFailure: As for `add`; nothing was changed.
        """

        def new_version(stored: Procedure | None) -> Procedure:
            if stored is None:
                raise BadInput(
                    f"no procedure has the id {excerpt(id)} in {self.name}; take one that a search "
                    "of it shows"
                )
            procedure = change(stored)
            if made_from and not same_text(stored, made_from):
                raise Conflict(
                    f"{stored.id} has changed meanwhile. It says now:\n{stored.text()}\n\nThe "
                    f"change that was not made says:\n{procedure.text()}"
                )
            if procedure.id != stored.id:
                raise BadInput(
                    f"an update of {stored.id} made a procedure with the id {procedure.id}; "
                    "keep the id, as dataclasses.replace does"
                )
            if procedure.key != stored.key:
                raise BadInput(
                    f"an update of {stored.id} changed its key from {excerpt(stored.key)} to "
                    f"{excerpt(procedure.key)}; add the procedure anew, and delete this one"
                )
            return with_versions(stored, procedure)

        return self._update_stored(id, new_version)

    def _update_stored(
        self, id: str, new_version: Callable[[Procedure | None], Procedure]
    ) -> Procedure:
        """Write what `new_version` returns for the stored procedure, and return it.

        Overridden by memories that must not lose changes by other threads or processes.
        """
        procedure = new_version(self.get(id))
        for failure in self.add([procedure]).failed:
            raise MemoryFailure(f"{id} was not changed: {failure.reason}")
        return procedure

    async def asearch(self, query: str, k: int = 3, **options: Any) -> list[Found]:  # noqa: ANN401
        """Search like `search`, with the same options, without blocking the event loop.

        By default, the search runs in a thread of its own. The event loop's executor has few
        threads: searches that hang would use them up, and an async store needs one to embed the
        query.
        """
        return await to_thread(self.search, query, k, **options)

    def delete(self, ids: Iterable[str]) -> int:  # noqa: ARG002 - overrides use it
        """Delete procedures, and return how many of the given ids existed."""
        raise self._lacks("delete")

    def has_deleted(self, id: str) -> bool:  # noqa: ARG002 - few memories record it
        """Return whether a procedure with this id was deleted; False if that is not recorded."""
        return False

    def count(self) -> int:
        """Return the number of procedures."""
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Procedure]:
        raise self._lacks("__iter__")

    def _lacks(self, method: str) -> BadInput:
        return BadInput(
            f"{self.name} has no {method}; give {type(self).__name__} that method for this"
        )

    def is_empty(self) -> bool:
        """Return whether the memory has no procedures; False if it does not support counting."""
        return type(self).count is not ProcedureMemory.count and self.count() == 0

    def as_retriever(
        self,
        k: int = 3,
        *,
        alpha: float | None = None,
        where: Mapping[str, str] | None = None,
    ) -> "BaseRetriever":
        """Return this memory as a LangChain retriever, which makes searches appear in traces."""
        from stepcraft.memory.retriever import ProcedureRetriever  # noqa: PLC0415 - loads langchain

        return ProcedureRetriever(memory=self, k=k, alpha=alpha, where=dict(where or {}))

    def close(self) -> None:  # noqa: B027 - a memory need have nothing to close
        """Close files and connections, if there are any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_memory(value: object) -> None:
    """Reject a value that is neither a memory nor the URL of one.

    Raises:
        BadInput: The value is neither.
    """
    if not isinstance(value, ProcedureMemory | str):
        raise BadInput(
            "a memory is a URL for open_memory or an object of a class that derives from "
            f"stepcraft.ProcedureMemory, not {type(value).__name__}: {excerpt(value)}"
        )


def by_short_id(memory: ProcedureMemory, beginning: str) -> Procedure:
    """Return the procedure with this id or key, or the only one whose id starts with it.

    Raises:
        BadInput: No procedure matches, or more than one does.
    """
    prefix = beginning.strip().lower()
    for id_ in (prefix, id_of_key(beginning)):
        if exact := memory.get(id_):
            return exact
    fitting = [procedure for procedure in memory if prefix and procedure.id.startswith(prefix)]
    if len(fitting) != 1:
        raise BadInput(
            f"{len(fitting) or 'no'} procedures in {memory.name} have an id that starts with "
            f"{excerpt(beginning)}; a search of it shows the ids"
        )
    return fitting[0]
