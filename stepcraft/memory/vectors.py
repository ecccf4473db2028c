"""Vectors that go along with their procedures, from a memory to another one of the same embedding model."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stepcraft.errors import AddReport
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory

WithVector = tuple[Procedure, NDArray[np.float32] | None]
"""A procedure and its unit vector: of length 0 where it has none, None where it is still to be made."""


@dataclass(frozen=True)
class MadeWith:
    """What the vectors of a memory were made with."""

    embeddings: str
    dimensions: int
    """Of the vectors; 0 with embeddings "none", or where there is no vector yet."""
    template: str

    def fits(self, other: "MadeWith") -> bool:
        """Whether the vectors of one can be those of the other."""
        return (
            self.embeddings == other.embeddings != "none"
            and self.template == other.template
            and (self.dimensions == other.dimensions or not self.dimensions or not other.dimensions)
        )


@runtime_checkable
class VectorMemory(ProcedureMemory, Protocol):
    """A memory that keeps the vectors of its procedures, and gives and takes them."""

    @property
    def made_with(self) -> MadeWith:
        """What its vectors were made with."""
        ...

    def with_vectors(self) -> Iterator[WithVector]:
        """All procedures with their vectors."""
        ...

    def add_with_vectors(
        self, items: Iterable[WithVector], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """As `add`; only vectors that are None are made."""
        ...
