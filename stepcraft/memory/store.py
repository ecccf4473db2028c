"""The protocol that every procedural memory keeps, and `open_memory`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from stepcraft.memory.procedure import Procedure

ALPHA = 0.4
"""The default weight of the vectors in a hybrid search: 1 only vectors (the AAG paper), 0 only words."""


@dataclass(frozen=True)
class Found:
    """A procedure and how well it fits the query (higher is better)."""

    procedure: Procedure
    score: float


@dataclass(frozen=True)
class Failed:
    """A record that did not go in: where it stood (a line of a file, a position in a list) and why."""

    where: str
    reason: str


@dataclass
class AddReport:
    """What became of the procedures that were to be added."""

    added: int = 0
    present: int = 0
    """Were there already, unchanged."""
    updated: int = 0
    """Had the same id and other content or source: replaced."""
    failed: list[Failed] = field(default_factory=list)


class ProcedureMemory(Protocol):
    """What the graphs and the command line ask of a memory. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """What the memory is called in messages and traces; never holds a secret."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether `add` and `delete` raise ReadOnlyMemory."""
        ...

    def add(self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None) -> AddReport:
        """Keep procedures. Adding twice is adding once; the same id with other content is an update.

        `progress` is called with the number of procedures done so far.
        """
        ...

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """The k procedures that fit best, best first. `alpha` None means the memory's own weight."""
        ...

    def get(self, id: str) -> Procedure | None:  # noqa: A002 - the field is called id
        """The procedure with this id, or None."""
        ...

    def delete(self, ids: Iterable[str]) -> int:
        """Forget procedures; how many there were."""
        ...

    def count(self) -> int:
        """How many procedures there are."""
        ...

    def __iter__(self) -> Iterator[Procedure]: ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
